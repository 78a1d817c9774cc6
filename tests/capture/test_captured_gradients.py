"""Autograd through compiled functions: one region, and every gradient, history and error is eager's."""

import pytest
import torch
from judging import check, same
from torch.utils.checkpoint import checkpoint

import graphlift

pytestmark = pytest.mark.without_passes


def leaf(*numbers):
    return torch.tensor([float(n) for n in numbers or (1, -2, 3)], requires_grad=True)


def pair():
    return leaf(), leaf(4, 5, 6)


def several_outputs(x, y):
    return x * y, x.sin(), (x * 3).detach(), x.argmax(), y


def views(x, y):
    z = x * 2
    return z.view(3, 1), z, x[1:], y.unsqueeze(0), z.t()


def detached_in_the_middle(x, y):
    return x * y.detach() + (x * 2).detach() * y


def integers(x, y):
    values, places = (x * y).sort()
    return values, places, (x > y), values.long()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * ctx.factor + x * 0.5, None


def custom_function(x, y):
    return Doubled.apply(x, 3.0) * y


def checkpointed(x, y):
    def block(a, b):
        return (a * b).sin() * a.exp()

    return checkpoint(block, x, y, use_reentrant=False) + x


def hooked(x, y):
    z = x * y
    z.register_hook(lambda gradient: gradient * 2)
    return z.sin()


@pytest.mark.parametrize(
    "program",
    [several_outputs, views, detached_in_the_middle, integers],
    ids=lambda f: f.__name__,
)
def test_one_region(program):
    check(program, pair, graphs=1, breaks=0)


@pytest.mark.parametrize("program", [custom_function, checkpointed, hooked], ids=lambda f: f.__name__)
def test_equal_to_eager_in_however_many(program):
    check(program, pair)


def backward_of(function, make, use):
    """Gradients of the leaves after `use` made of the results what is differentiated."""
    args = make()
    use(function(*args))
    return [getattr(arg, "grad", None) for arg in args]


def compare(program, make, use):
    compiled = graphlift.compile(program)
    for _ in range(3):
        same(backward_of(compiled, make, use), backward_of(program, make, use), "gradients")
    counts = graphlift.counters()
    assert counts["graphs"] == 1 and counts["hits"] == 2, counts


def test_unused_outputs_and_undefined_gradients():
    def program(x, y):
        return x.sin(), y.cos(), x * y

    compare(program, pair, lambda results: results[1].sum().backward())
    graphlift.reset()
    compare(program, pair, lambda results: (results[0] + results[2]).sum().backward())


def test_gradients_for_some_inputs_only():
    def make():
        return leaf(), torch.tensor([1.0, 2.0, 3.0])

    compare(lambda x, y: x * y + y.sin(), make, lambda result: result.sum().backward())


def test_mutated_inputs():
    def program(x, buffer):
        buffer.mul_(0.5).add_(x.detach())
        z = x * 2
        z.mul_(x)
        return z * buffer

    check(program, lambda: (leaf(), torch.ones(3)), graphs=1, breaks=0)

    def writes_history(x, buffer):
        buffer.copy_(x * 3)
        return buffer * 2

    def use(buffer, result):
        (buffer.sum() + result.sum()).backward()

    compiled = graphlift.compile(writes_history)
    gradients = []
    for function in (compiled, compiled, writes_history):
        x, buffer = leaf(), torch.zeros(3)
        use(buffer, function(x, buffer))
        gradients.append(x.grad)
    same(gradients[:2], gradients[2:] * 2)


def test_backward_twice_over_one_graph():
    compiled = graphlift.compile(lambda x: x.exp().sum())
    x, twin = leaf(), leaf()
    loss, want = compiled(x), twin.exp().sum()
    for result in (loss, want):
        result.backward(retain_graph=True)
        result.backward()
    same(x.grad, twin.grad)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


def test_two_calls_before_one_backward_and_accumulation():
    def program(x):
        return x.exp() * x

    compiled, x, twin = graphlift.compile(program), leaf(), leaf()
    for _ in range(2):  # the second round adds to the gradients of the first
        (compiled(x).sum() + compiled(x * 2).sum()).backward()
        (program(twin).sum() + program(twin * 2).sum()).backward()
    same(x.grad, twin.grad)


def test_hooks_of_leaves_and_results():
    seen = []
    compiled, x = graphlift.compile(lambda x: x.exp()), leaf()
    x.register_hook(lambda gradient: seen.append("leaf") or gradient * 2)
    result = compiled(x)
    result.register_hook(lambda gradient: seen.append("result") or gradient * 3)
    result.sum().backward()
    torch.testing.assert_close(x.grad, 6 * x.detach().exp())
    assert seen == ["result", "leaf"] and graphlift.graph_count() == 1


def test_double_backward_is_refused_with_what_to_do():
    x = leaf()
    (gradient,) = torch.autograd.grad(graphlift.compile(lambda x: x.exp().sum())(x), x, create_graph=True)
    torch.testing.assert_close(gradient, x.exp())
    with pytest.raises(RuntimeError, match="differentiated twice.*graphlift.disable"):
        gradient.sum().backward()


def test_writing_into_what_backward_needs_is_eagers_error():
    compiled, x = graphlift.compile(lambda x: x.exp()), leaf()
    result = compiled(x)
    result.data_ptr()
    with torch.no_grad():
        result.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_what_no_gradient_needs_may_be_written_over():
    def program(a, b):
        return a * 2, a * b, (a * 3).sin()

    results = []
    for f in (program, graphlift.compile(program)):
        for used in ((0,), (2,), (0, 2)):
            a, b = torch.ones(3, requires_grad=True), torch.ones(3)
            y = f(a, b)
            b.add_(1)
            sum(y[i].sum() for i in used).backward()
            results.append(a.grad)
        a, b = torch.ones(3, requires_grad=True), torch.ones(3)
        y = f(a, b)
        b.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y[1].sum().backward()
    torch.testing.assert_close(results[:3], results[3:])
    assert graphlift.graph_count() == 1


def test_a_gradient_that_is_kept_of_a_value_inside():
    def program(x):
        y = x * 2
        y.retain_grad()
        return (y * y).sum(), y

    def kept(f):
        x = torch.arange(3.0, requires_grad=True)
        loss, y = f(x)
        loss.backward()
        return y.grad.tolist(), x.grad.tolist(), y.retains_grad

    for backend in ("reference", lambda module, inputs: module.forward):
        graphlift.reset()
        compiled = graphlift.compile(program, backend=backend)
        for _ in range(2):
            assert kept(compiled) == kept(program)
        assert graphlift.graph_count() >= 1
