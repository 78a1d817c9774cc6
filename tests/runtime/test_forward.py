"""Forward: arguments of every kind reach torch's kernels, and results come back."""

import pytest
import torch


def test_symbolic_sizes_are_evaluated_at_each_call(build):
    run = build(
        """%0: f32[s0, s1]{s1, 1} cpu = input x
%1: f32[s0*s1]{1} cpu = aten::view.default(%0, [s0*s1])
%2: f32[s0 + 1, s1]{s1, 1} cpu = aten::new_zeros.default(%0, [s0 + 1, s1], none, none, none, none)
%3: f32[s0*s1]{1} cpu = aten::mul.Scalar(%1, s0)
return (%3, %2)
""",
        [{}],
        [{}, {}],
    )
    for rows, columns in [(2, 3), (5, 7)]:
        x = torch.randn(rows, columns)
        scaled, zeros = run([x], [rows, columns])
        assert torch.equal(scaled, x.view(-1) * rows)
        assert zeros.shape == (rows + 1, columns)


def test_lists_of_tensors_and_several_outputs(build):
    run = build(
        """%0: f32[4, 6]{6, 1} cpu = input x
%1: f32[4, 6]{6, 1} cpu = input y
%2: f32[8, 6]{6, 1} cpu = aten::cat.default([%0, %1], 0)
%3: (f32[8, 2]{6, 1} cpu, f32[8, 2]{6, 1} @(2) cpu, f32[8, 2]{6, 1} @(4) cpu) = aten::split.Tensor(%2, 2, 1)
%4: f32[8, 2]{2, 1} cpu = aten::add.Tensor(%3.0, %3.2, 2)
%5: (f32[8]{1} cpu, i64[8]{1} cpu) = aten::max.dim(%4, 1, false)
return (%5.1, %5.0)
""",
        [{}, {}],
        [{}, {}],
    )
    x, y = torch.randn(4, 6), torch.randn(4, 6)
    a, _, c = torch.cat([x, y]).split(2, 1)
    values, indices = torch.add(a, c, alpha=2).max(1)
    got_indices, got_values = run([x, y])
    assert torch.equal(got_values, values)
    assert torch.equal(got_indices, indices)


def test_optional_tensors_dtypes_and_floats(build):
    run = build(
        """%0: f32[4, 6]{6, 1} cpu = input x
%1: i64[2]{1} cpu = input i
%2: f32[4, 2]{2, 1} cpu = aten::index.Tensor(%0, [none, %1])
%3: f64[4, 2]{2, 1} cpu = aten::_to_copy.default(%2, float64, none, none, none, false, none)
%4: f64[4, 2]{2, 1} cpu = aten::leaky_relu.default(%3, 0.25)
%5: f64[4]{1} cpu = aten::sum.dim_IntList(%4, [1], false, none)
return (%5)
""",
        [{}, {}],
        [{}],
    )
    x, i = torch.randn(4, 6), torch.tensor([5, 0])
    expected = torch.nn.functional.leaky_relu(x[:, i].double(), 0.25).sum(1)
    assert torch.equal(run([x, i])[0], expected)


def test_a_value_used_often_and_returned_twice_is_two_tensors(build):
    run = build(
        """%0: f32[3]{1} cpu = input x
%1: f32[3]{1} cpu = aten::mul.Tensor(%0, %0)
%2: f32[3]{1} cpu = aten::add.Tensor(%1, %1, 1)
return (%2, %2)
""",
        [{}],
        [{}, {}],
    )
    x = torch.randn(3)
    a, b = run([x])
    assert torch.equal(a, x * x * 2)
    assert a.data_ptr() != b.data_ptr()


def test_constants_are_never_handed_out(region):
    constant = torch.arange(3.0)
    x = region.input(torch.randn(3))
    from_graph = region.constant(constant)
    region.output(region.call("aten::add.Tensor", x, from_graph, 1))
    region.output(from_graph)
    run = region.build()
    x = torch.randn(3)
    total, copy = run([x])
    assert torch.equal(total, x + constant)
    copy.zero_()
    assert torch.equal(run([x])[0], x + torch.arange(3.0))


def test_random_numbers_follow_the_seed(build):
    run = build(
        """%0: f32[64]{1} cpu = input x
%1: (f32[64]{1} cpu, bool[64]{1} cpu) = aten::native_dropout.default(%0, 0.5, true)
%2: f32[64]{1} cpu = aten::rand_like.default(%0, none, none, none, none, none)
return (%1.0)
""",
        [{}],
        [{}],
    )
    x = torch.randn(64)
    torch.manual_seed(3)
    expected = torch.native_dropout(x, 0.5, True)[0]
    torch.rand(64)
    after = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(run([x])[0], expected)
    assert torch.equal(torch.rand(1), after), "a draw that nobody uses moves the generator all the same"


def test_kernel_errors_are_torchs_own(build):
    run = build(
        """%0: f32[3]{1} cpu = input x
%1: f32[3]{1} cpu = input y
%2: f32[3]{1} cpu = aten::add.Tensor(%0, %1, 1)
return (%2)
""",
        [{}, {}],
        [{}],
    )
    with pytest.raises(RuntimeError, match="must match the size"):
        run([torch.randn(3), torch.randn(4)])


def test_autocast_and_grad_mode_of_the_caller_do_not_reach_the_kernels(build):
    run = build(
        """%0: f32[4, 4]{4, 1} cpu grad = input x
%1: f32[4, 4]{4, 1} cpu = aten::mm.default(%0, %0)
return (%1)
""",
        [{}],
        [{}],
    )
    x = torch.randn(4, 4, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (result,) = run([x])
    assert result.dtype is torch.float32
    assert not result.requires_grad


@pytest.mark.alone
def test_other_threads_run_meanwhile(build):
    import threading
    import time

    run = build(
        """%0: f32[1024, 1024]{1024, 1} cpu = input x
%1: f32[1024, 1024]{1024, 1} cpu = aten::mm.default(%0, %0)
%2: f32[1024, 1024]{1024, 1} cpu = aten::mm.default(%1, %0)
%3: f32[1024, 1024]{1024, 1} cpu = aten::mm.default(%2, %0)
return (%3)
""",
        [{}],
        [{}],
    )
    x = torch.randn(1024, 1024)
    stop, ticks = threading.Event(), []

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        start = time.perf_counter()
        run([x])
        end = time.perf_counter()
    finally:
        stop.set()
        thread.join()
    assert sum(start < t < end for t in ticks) >= 3
