"""Outputs as eager has them: the very input, views, written inputs, detached and inference tensors, parameters."""

import pytest
import torch


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


@pytest.fixture
def double_in_place(region):
    """x.mul_(2), x wanting a gradient; returns x."""
    x = region.input(torch.randn(3), gradient=0, mutated=True, tangent=0)
    t = region.tangent(torch.randn(3))
    region.output(aliasing="input", of=0, requires_grad=True)
    region.write(region.call("aten::mul.Scalar", x, 2))
    region.gradient(region.call("aten::mul.Scalar", t, 2, backward=True))
    return region.build()


def view_region(region, example, op, *args, **plan):
    x = region.input(example)
    region.output(region.call(op, x, *args), aliasing="view_of_input", of=0, **plan)
    return region.build()


def test_an_input_comes_back_as_the_very_object(region):
    class Box(torch.Tensor):
        pass

    region.input(torch.randn(3))
    region.output(aliasing="input", of=0)
    x = torch.nn.Parameter(torch.randn(3))
    assert region.build()([x])[0] is x


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("aten::view.default", ([6, 4],)),
        ("aten::t.default", ()),
        ("aten::slice.Tensor", (0, 1, 3, 1)),
        ("aten::select.int", (1, 2)),
        ("aten::expand.default", ([2, 4, 6],)),
        ("aten::alias.default", ()),
        ("aten::diagonal.default", (0, 0, 1)),
    ],
)
def test_views_of_an_input(region, op, args):
    run = view_region(region, torch.randn(4, 6), op, *args, requires_grad=True)
    x = leaf(4, 6)
    base = x * 1
    (view,) = run([base])
    namespace, name = op.split("::")
    packet, overload = name.split(".")
    expected = getattr(getattr(getattr(torch.ops, namespace), packet), overload)(base, *args)
    assert torch.equal(view, expected)
    again = base.detach().requires_grad_()
    other = getattr(getattr(getattr(torch.ops, namespace), packet), overload)(again, *args)
    assert view.stride() == expected.stride()
    assert view._is_view()
    assert view._base is base
    assert view.requires_grad
    weight = torch.randn_like(view)
    (view * weight).sum().backward()
    (other * weight).sum().backward()
    torch.testing.assert_close(x.grad, again.grad)


def test_writing_to_a_returned_view_writes_to_the_base(region):
    run = view_region(region, torch.randn(4, 6), "aten::select.int", 0, 1, requires_grad=True)
    x = leaf(4, 6)
    base = x * 1
    version = base._version
    (view,) = run([base])
    view.mul_(3)
    assert base._version == version + 1 == view._version
    base.sum().backward()
    expected = torch.ones(4, 6)
    expected[1] = 3
    assert torch.equal(x.grad, expected)


def test_a_view_made_under_no_grad(region):
    run = view_region(region, torch.randn(4, 6), "aten::t.default", requires_grad=True, no_history=True)
    x = leaf(4, 6)
    (view,) = run([x])
    with torch.no_grad():
        expected = x.t()
    assert view.requires_grad == expected.requires_grad
    assert view.grad_fn is None
    assert view._is_view() == expected._is_view()
    assert view._base is x
    for tensor in (expected, view):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad|created in no_grad mode"):
            tensor.add_(1)


def test_a_detached_view_shares_memory_and_version(region):
    run = view_region(region, torch.randn(4, 6), "aten::t.default", detached=True)
    x = leaf(4, 6)
    (view,) = run([x])
    assert not view.requires_grad
    assert view.data_ptr() == x.data_ptr()
    version = x._version
    view.add_(1)
    assert x._version == version + 1
    run = view_region(type(region)(), torch.randn(4, 6), "aten::detach.default", detached=True)
    (detached,) = run([x])
    assert detached._is_view() == x.detach()._is_view()
    assert detached.is_leaf


def test_complex_views(region):
    run = view_region(region, torch.randn(4, dtype=torch.complex64), "aten::view_as_real.default", requires_grad=True)
    x = torch.randn(4, dtype=torch.complex64, requires_grad=True)
    (view,) = run([x])
    assert torch.equal(view, torch.view_as_real(x))
    view.pow(2).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())


def test_views_of_an_output(region):
    x, t = region.input(leaf(4, 6), gradient=0), region.tangent(torch.randn(4, 6))
    y = region.call("aten::sin.default", x)
    region.output(region.call("aten::t.default", y), aliasing="view_of_output", of=1, requires_grad=True)
    region.output(y, tangent=0, requires_grad=True, differentiable=True)
    region.output(region.call("aten::alias.default", y), aliasing="view_of_output", of=1, detached=True)
    cos = region.call("aten::cos.default", x, backward=True)
    region.gradient(region.call("aten::mul.Tensor", t, cos, backward=True))
    x = leaf(4, 6)
    transposed, y, detached = region.build()([x])
    assert transposed._base is y
    assert transposed._version == y._version == detached._version
    assert not detached.requires_grad
    assert detached.data_ptr() == y.data_ptr()
    assert not detached._is_view()
    transposed.mul_(2)
    (y.sum() + transposed.sum()).backward()
    torch.testing.assert_close(x.grad, 4 * x.detach().cos())


def test_written_input_has_history_and_version(double_in_place):
    x = leaf(3)
    middle = x * 1
    version = middle._version
    (result,) = double_in_place([middle])
    assert result is middle
    assert middle._version == version + 1
    torch.testing.assert_close(middle, 2 * x)
    middle.sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 2.0))


def test_written_view_passes_its_history_to_the_base(double_in_place):
    x = leaf(2, 3)
    base = x * 1
    double_in_place([base[1]])
    assert torch.equal(base[1], 2 * x[1])
    base.sum().backward()
    assert torch.equal(x.grad, torch.tensor([[1.0] * 3, [2.0] * 3]))


def test_writing_to_a_leaf_is_eagers_error(double_in_place):
    x = leaf(3)
    before = x.detach().clone()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        double_in_place([x])
    assert torch.equal(x, before)


def test_writing_to_an_expanded_input_is_eagers_error(double_in_place):
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        double_in_place([torch.zeros(1).expand(3)])


def test_write_under_no_grad_to_a_leaf(region):
    p = region.input(torch.randn(3), mutated=True, no_grad=True)
    g = region.input(torch.randn(3))
    region.write(region.call("aten::add.Tensor", p, g, -0.5))
    p, g = leaf(3), torch.randn(3)
    before, version = p.detach().clone(), p._version
    assert region.build()([p, g]) == []
    assert torch.equal(p, before - 0.5 * g)
    assert p._version == version + 1
    assert p.is_leaf
    assert p.requires_grad


def test_statistics_are_written_without_a_new_version(region):
    x, mean = region.input(torch.randn(3)), region.input(torch.randn(3), mutated=True, unversioned=True)
    region.write(region.call("aten::lerp.Scalar", mean, x, 0.5))
    x, mean = torch.ones(3), torch.zeros(3)
    region.build()([x, mean])
    assert torch.equal(mean, torch.full((3,), 0.5))
    assert mean._version == 0


def test_written_input_that_backward_needs_as_it_was(region):
    x = region.input(torch.randn(3), gradient=0)
    stat = region.input(torch.randn(3), mutated=True)
    t = region.tangent(torch.randn(3))
    region.output(region.call("aten::mul.Tensor", x, stat), tangent=0, requires_grad=True, differentiable=True)
    region.write(region.call("aten::add.Tensor", stat, stat))
    region.gradient(region.call("aten::mul.Tensor", t, stat, backward=True))
    x, stat = leaf(3), torch.randn(3)
    before = stat.clone()
    (y,) = region.build()([x, stat])
    assert torch.equal(stat, 2 * before)
    y.sum().backward()
    assert torch.equal(x.grad, before)


def test_inputs_that_swap_their_values(region):
    a, b = region.input(torch.randn(3), mutated=True), region.input(torch.randn(3), mutated=True)
    region.write(b)
    region.write(region.call("aten::view.default", a, [3]))
    a, b = torch.randn(3), torch.randn(3)
    old_a, old_b = a.clone(), b.clone()
    region.build()([a, b])
    assert torch.equal(a, old_b)
    assert torch.equal(b, old_a)


def test_view_of_a_written_input_shows_the_new_data(region):
    x = region.input(torch.randn(2, 3), mutated=True)
    new = region.call("aten::add.Scalar", x, 1)
    region.output(region.call("aten::t.default", new), aliasing="view_of_input", of=0)
    region.output(region.call("aten::sum.default", x))
    region.write(new)
    x = torch.zeros(2, 3)
    view, total = region.build()([x])
    assert torch.equal(view, torch.ones(3, 2))
    assert view._base is x
    assert total == 0


def test_an_output_that_only_looks_at_an_input_is_a_copy(region):
    x = region.input(torch.randn(2, 3), mutated=True)
    region.output(region.call("aten::view.default", x, [6]))
    region.write(region.call("aten::add.Scalar", x, 1))
    x = torch.zeros(2, 3)
    (flat,) = region.build()([x])
    assert torch.equal(flat, torch.zeros(6))
    assert torch.equal(x, torch.ones(2, 3))


def test_outputs_without_gradient(region):
    x, t = region.input(leaf(4), gradient=0), region.tangent(torch.randn(4))
    region.output(region.call("aten::argsort.default", x))
    region.output(region.call("aten::mul.Scalar", x, 2), tangent=0, requires_grad=True, differentiable=True)
    region.output(region.call("aten::mul.Scalar", x, 3))
    region.output(region.call("aten::ones_like.default", x), requires_grad=True)
    region.gradient(region.call("aten::mul.Scalar", t, 2, backward=True))
    order, double, triple, ones = region.build()([leaf(4)])
    assert [order.requires_grad, double.requires_grad, triple.requires_grad] == [False, True, False]
    assert ones.is_leaf
    assert ones.requires_grad
    assert triple.grad_fn is None


def test_output_that_passes_its_gradient_to_nobody(region):
    x, _ = region.input(leaf(4)), region.tangent(torch.randn(4))
    region.output(region.call("aten::mul.Scalar", x, 2), tangent=0, requires_grad=True, differentiable=True)
    (y,) = region.build()([leaf(4)])
    assert y.requires_grad
    y.sum().backward()


def test_inference_mode_around_and_inside(region):
    x = region.input(torch.randn(3))
    region.output(region.call("aten::mul.Scalar", x, 2), inference=True)
    run = region.build()
    (inside,) = run([torch.ones(3)])
    with torch.inference_mode():
        (around,) = run([torch.ones(3)])
    for result in (inside, around):
        assert result.is_inference()
        assert torch.equal(result, torch.full((3,), 2.0))
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
            result.add_(1)


def test_ordinary_tensor_out_of_inference_mode(region):
    x = region.input(torch.randn(3))
    region.output(region.call("aten::mul.Scalar", x, 2), inference=False)
    run = region.build()
    with torch.inference_mode():
        (result,) = run([torch.ones(3)])
    assert not result.is_inference()
    result.add_(1)
    result.requires_grad_().sum().backward()


def test_views_in_inference_mode(region):
    run = view_region(region, torch.randn(4, 6), "aten::t.default", inference=True)
    with torch.inference_mode():
        x = torch.randn(4, 6)
        (view,) = run([x])
        assert view.is_inference()
        assert torch.equal(view, x.t())


def test_parameters_made_inside(region):
    x = region.input(torch.randn(3))
    region.output(region.call("aten::mul.Scalar", x, 2), as_parameter=True, requires_grad=True)
    (parameter,) = region.build()([torch.ones(3)])
    assert type(parameter) is torch.nn.Parameter
    assert parameter.requires_grad
    assert parameter.is_leaf


def test_numbers_promote_as_pythons_numbers(build):
    run = build(
        """%0: bf16[2]{1} cpu = input x
%1: bf16[2]{1} cpu = aten::mul.Tensor(%0, 2.5)
%2: bf16[2]{1} cpu = aten::add.Tensor(%1, s0, 1)
%3: bool[2]{1} cpu = aten::gt.Tensor(%2, true)
return (%2, %3)
""",
        [{}],
        [{}, {}],
    )
    x = torch.tensor([1.0, -4.0], dtype=torch.bfloat16)
    sums, greater = run([x], [3])
    assert sums.dtype is torch.bfloat16
    assert torch.equal(sums, x * 2.5 + 3)
    assert torch.equal(greater, x * 2.5 + 3 > True)


def test_a_failed_run_leaves_no_references(region):
    import sys

    x, y = region.input(torch.randn(3)), region.input(torch.randn(3))
    region.output(aliasing="input", of=0)
    region.output(region.call("aten::add.Tensor", x, y))
    run = region.build()
    x, y = torch.randn(3), torch.randn(5)
    count = sys.getrefcount(x)
    for _ in range(3):
        with pytest.raises(RuntimeError):
            run([x, y])
    assert sys.getrefcount(x) == count
