"""Backward: one node per call, with eager's gradients, errors and memory of what was saved."""

import threading

import pytest
import torch
from torch.nn import functional as F


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


@pytest.fixture
def product(region):
    """x * y of two 3-vectors, both wanting gradients."""
    x, y = region.input(leaf(3), gradient=0), region.input(leaf(3), gradient=1)
    t = region.tangent(torch.randn(3))
    region.output(region.call("aten::mul.Tensor", x, y), tangent=0, requires_grad=True, differentiable=True)
    region.gradient(region.call("aten::mul.Tensor", t, y, backward=True))
    region.gradient(region.call("aten::mul.Tensor", t, x, backward=True))
    return region.build()


@pytest.fixture
def two_outputs(region):
    """a.exp() and b.log(), with a third input used by both: c."""
    a, b, c = (region.input(leaf(3).abs(), gradient=i) for i in range(3))
    t, u = region.tangent(torch.randn(3)), region.tangent(torch.randn(3))
    exp = region.call("aten::exp.default", a)
    log = region.call("aten::log.default", b)
    first = region.call("aten::mul.Tensor", exp, c)
    second = region.call("aten::mul.Tensor", log, c)
    region.output(first, tangent=0, requires_grad=True, differentiable=True)
    region.output(second, tangent=1, requires_grad=True, differentiable=True)
    tc = region.call("aten::mul.Tensor", t, c, backward=True)
    uc = region.call("aten::mul.Tensor", u, c, backward=True)
    region.gradient(region.call("aten::mul.Tensor", tc, exp, backward=True))
    region.gradient(region.call("aten::div.Tensor", uc, b, backward=True))
    te = region.call("aten::mul.Tensor", t, exp, backward=True)
    ul = region.call("aten::mul.Tensor", u, log, backward=True)
    region.gradient(region.call("aten::add.Tensor", ul, te, backward=True))
    return region.build()


def test_mlp_equals_eager(region):
    x, target = torch.randn(8, 16), torch.randn(8, 4)
    w1, b1, w2, b2 = leaf(32, 16), leaf(32), leaf(4, 32), leaf(4)
    loss = F.mse_loss(F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2), target)
    expected = torch.autograd.grad(loss, [w1, b1, w2, b2])

    vx, vt = region.input(x), region.input(target)
    v1, c1, v2, c2 = (region.input(w, gradient=i) for i, w in enumerate((w1, b1, w2, b2)))
    t = region.tangent(torch.tensor(1.0))
    h = region.call("aten::addmm.default", c1, vx, region.call("aten::t.default", v1))
    g = region.call("aten::gelu.default", h)
    y = region.call("aten::addmm.default", c2, g, region.call("aten::t.default", v2))
    region.output(region.call("aten::mse_loss.default", y, vt), tangent=0, requires_grad=True, differentiable=True)

    def back(op, *args):
        return region.call(op, *args, backward=True)

    dy = back("aten::mse_loss_backward.default", t, y, vt, 1)
    dg = back("aten::mm.default", dy, v2)
    dh = back("aten::gelu_backward.default", dg, h)
    region.gradient(back("aten::mm.default", back("aten::t.default", dh), vx))
    region.gradient(back("aten::sum.dim_IntList", dh, [0]))
    region.gradient(back("aten::mm.default", back("aten::t.default", dy), g))
    region.gradient(back("aten::sum.dim_IntList", dy, [0]))
    (got,) = region.build()([x, target, w1, b1, w2, b2])
    assert torch.equal(got, loss)
    assert type(got.grad_fn).__name__ == "GraphliftBackward"
    assert got.grad_fn.name() == "GraphliftBackward"
    got.backward()
    for parameter, gradient in zip((w1, b1, w2, b2), expected):
        torch.testing.assert_close(parameter.grad, gradient)


def test_expanded_and_transposed_tangents(product):
    x, y = leaf(3), leaf(3)
    product([x, y])[0].sum().backward()
    assert torch.equal(x.grad, y)
    wide = torch.randn(3, 2)
    product([x, y])[0].backward(wide[:, 0])
    assert torch.equal(x.grad, y + y * wide[:, 0])


def test_one_output_unused_leaves_eagers_gradients(two_outputs):
    a, b, c = leaf(3), torch.zeros(3, requires_grad=True), leaf(3)
    first, _ = two_outputs([a, b, c])
    first.sum().backward()
    assert b.grad is None, "no gradient, not zeros; and no 0 * inf from the other output"
    assert torch.equal(a.grad, (a.exp() * c).detach())
    assert torch.equal(c.grad, a.exp().detach())


def test_both_outputs_used(two_outputs):
    a, b, c = leaf(3), torch.rand(3, requires_grad=True), leaf(3)
    first, second = two_outputs([a, b, c])
    (first * 2 + second).sum().backward()
    expected = torch.autograd.grad((a.exp() * c * 2 + b.log() * c).sum(), [a, b, c])
    for tensor, gradient in zip((a, b, c), expected):
        torch.testing.assert_close(tensor.grad, gradient)


def test_outputs_one_after_the_other_with_retain_graph(two_outputs):
    a, b, c = leaf(3), torch.rand(3, requires_grad=True), leaf(3)
    first, second = two_outputs([a, b, c])
    first.sum().backward(retain_graph=True)
    second.sum().backward()
    expected = torch.autograd.grad((a.exp() * c + b.log() * c).sum(), [a, b, c])
    for tensor, gradient in zip((a, b, c), expected):
        torch.testing.assert_close(tensor.grad, gradient)


def test_second_backward_needs_retain_graph(product):
    x, y = leaf(3), leaf(3)
    (z,) = product([x, y])
    z.sum().backward(retain_graph=True)
    z.sum().backward()
    assert torch.equal(x.grad, 2 * y)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        z.sum().backward()


def test_nothing_saved_can_run_again(region):
    x, t = region.input(leaf(3), gradient=0), region.tangent(torch.randn(3))
    region.output(region.call("aten::mul.Scalar", x, 3), tangent=0, requires_grad=True, differentiable=True)
    region.gradient(region.call("aten::mul.Scalar", t, 3, backward=True))
    x = leaf(3)
    (y,) = region.build()([x])
    y.sum().backward()
    y.sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 6.0))


def test_two_calls_before_one_backward_and_accumulation(product):
    x, y = leaf(3), leaf(3)
    (z,) = product([x, y])
    (w,) = product([z, y])
    (v,) = product([x, x])
    (w + v).sum().backward()
    expected = torch.autograd.grad((x * y * y + x * x).sum(), [x, y])
    torch.testing.assert_close(x.grad, expected[0])
    torch.testing.assert_close(y.grad, expected[1])
    product([x, y])[0].sum().backward()
    torch.testing.assert_close(x.grad, expected[0] + y)


def test_gradients_of_some_inputs_only(product):
    x, y = leaf(3), leaf(3)
    (z,) = product([x, y])
    (gradient,) = torch.autograd.grad(z.sum(), [y])
    assert torch.equal(gradient, x)
    assert x.grad is None


def test_input_changed_in_place_is_noticed(product):
    x, y = leaf(3), leaf(3)
    (z,) = product([x, y])
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_saved_view_of_a_changed_input_is_noticed(region):
    x, w = region.input(torch.randn(2, 3), gradient=0), region.input(leaf(4, 3))
    t = region.tangent(torch.randn(2, 4))
    transposed = region.call("aten::t.default", w)
    region.output(region.call("aten::mm.default", x, transposed), tangent=0, requires_grad=True, differentiable=True)
    back = region.call("aten::t.default", transposed, backward=True)
    region.gradient(region.call("aten::mm.default", t, back, backward=True))
    run = region.build()
    x, w = leaf(2, 3), torch.randn(4, 3)
    (y,) = run([x, w])
    w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_saved_output_changed_in_place_is_noticed(region):
    x, t = region.input(leaf(3), gradient=0), region.tangent(torch.randn(3))
    y = region.call("aten::exp.default", x)
    region.output(y, tangent=0, requires_grad=True, differentiable=True)
    region.gradient(region.call("aten::mul.Tensor", t, y, backward=True))
    run = region.build()
    x = leaf(3)
    (y,) = run([x])
    (y * 2).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.exp().detach())
    (y,) = run([x])
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_saved_tensor_hooks_see_what_is_saved(product):
    x, y = leaf(3), leaf(3)
    packed, unpacked = [], []

    def pack(tensor):
        packed.append(tensor)
        return len(packed) - 1

    def unpack(index):
        unpacked.append(index)
        return packed[index]

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        (z,) = product([x, y])
    z.sum().backward()
    assert len(packed) == 2
    assert sorted(unpacked) == [0, 1]
    assert torch.equal(x.grad, y)


def test_tensor_hooks_retain_grad_and_node_hooks(product):
    x, y = leaf(3), leaf(3)
    seen = []
    (z,) = product([x * 1, y])
    z.register_hook(lambda g: seen.append("output") or g * 2)
    z.retain_grad()
    z.grad_fn.register_hook(lambda *_: seen.append("node"))
    x.register_hook(lambda g: seen.append("input"))
    z.sum().backward()
    assert seen == ["output", "node", "input"]
    assert torch.equal(z.grad, torch.full((3,), 2.0))
    assert torch.equal(x.grad, 2 * y)


def test_create_graph_gives_first_order_and_refuses_second(product):
    x, y = leaf(3), leaf(3)
    (z,) = product([x, y])
    (gradient,) = torch.autograd.grad(z.sum(), [x], create_graph=True)
    assert torch.equal(gradient, y)
    with pytest.raises(RuntimeError, match="graphlift.*twice.*graphlift.disable"):
        torch.autograd.grad(gradient.sum(), [y], allow_unused=True, retain_graph=True)
    with pytest.raises(RuntimeError, match="graphlift.*twice"):
        gradient.sum().backward()


def test_first_use_of_the_graph_frees_what_was_saved(region):
    import weakref

    x, t = region.input(leaf(3, 3), gradient=0), region.tangent(torch.randn(3, 3))
    square = region.call("aten::mm.default", x, x)
    region.output(region.call("aten::exp.default", square), tangent=0, requires_grad=True, differentiable=True)
    region.gradient(region.call("aten::mul.Tensor", t, square, backward=True))
    run = region.build()
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(weakref.ref(t)) or t, lambda t: t):
        (y,) = run([leaf(3, 3)])
    assert saved[0]() is not None
    y.sum().backward()
    assert saved[0]() is None


def test_nothing_is_kept_when_outputs_die(region):
    import weakref

    x, t = region.input(leaf(3), gradient=0), region.tangent(torch.randn(3))
    y = region.call("aten::exp.default", x)
    region.output(y, tangent=0, requires_grad=True, differentiable=True)
    region.output(region.call("aten::alias.default", y), aliasing="view_of_output", of=0, requires_grad=True)
    region.gradient(region.call("aten::mul.Tensor", t, y, backward=True))
    run = region.build()
    x = leaf(3)
    outputs = run([x])
    watched = [weakref.ref(tensor) for tensor in (x, *outputs)]
    del x, outputs
    assert [ref() for ref in watched] == [None] * 3


def test_backward_on_another_thread_after_the_region_is_gone(product, region):
    x, y = leaf(3), leaf(3)
    (z,) = product([x, y])
    del product
    thread = threading.Thread(target=lambda: z.sum().backward())
    thread.start()
    thread.join()
    assert torch.equal(x.grad, y)


def test_many_threads_share_a_region(product):
    failures = []

    def work():
        for _ in range(100):
            x, y = leaf(3), leaf(3)
            product([x, y])[0].sum().backward()
            if not torch.equal(x.grad, y):
                failures.append(x)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_upstream_and_downstream_history(product):
    x, y = leaf(3), leaf(3)
    product([product([x.sin(), y])[0], y.exp()])[0].pow(2).sum().backward()
    expected = torch.autograd.grad((x.sin() * y * y.exp()).pow(2).sum(), [x, y])
    torch.testing.assert_close(x.grad, expected[0])
    torch.testing.assert_close(y.grad, expected[1])


def test_detect_anomaly_names_the_forward_call(product):
    x, y = leaf(3), torch.full((3,), float("inf"))
    with torch.autograd.set_detect_anomaly(True), pytest.warns(UserWarning, match="GraphliftBackward"):
        (z,) = product([x, y.requires_grad_()])
        with pytest.raises(RuntimeError, match="GraphliftBackward.*nan"):
            z.backward(torch.zeros(3))
