"""Slices, their gradients, padding and turning around are parts of kernels, not calls that fill memory twice."""

import pytest
import torch
import torch.nn.functional as F
from closeness import close

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")


@pytest.fixture
def kernels():
    before = graphlift.counters()["kernels"]
    yield
    assert graphlift.counters()["kernels"] > before


def rotated(x, cos):
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * cos.flip(-1)


PROGRAMS = [
    (lambda x, y: x[:, 0].sin() * y[:, -1] + x[:, 2], 3),
    (lambda x, y: (x[:, 1:] - x[:, :-1]).pow(2) * y[:, 1:], 3),
    (lambda x, y: (x[..., 1:3] * 2).exp() + y[1:2, :, :2], 3),
    (rotated, 3),
    (lambda x, y: F.pad(x, (1, 2, 0, 1), value=0.5) * F.pad(y, (3, 0, 1, 0)), 3),
    (lambda x, y: F.pad(x, (-1, 2)).tanh() + F.pad(y, (0, 1)), 3),
    (lambda x, y: x.flip(0, 2).relu() * y.flip(1), 3),
    (lambda x, y: x.select_scatter(y[:, 0] * 2, 1, 1).exp(), 3),
    (lambda x, y: x.slice_scatter(y[:, :2] * 2, 1, 1, 3).exp(), 3),
]


def run(function, inputs):
    inputs = [each.detach().requires_grad_() for each in inputs]
    result = function(*inputs)
    result.pow(2).sum().backward()
    return [result.detach(), *(each.grad for each in inputs)]


@pytest.mark.parametrize("function, rank", PROGRAMS)
@pytest.mark.parametrize("dynamic", [False, None, True])
def test_values_and_gradients(function, rank, dynamic, kernels):
    torch.manual_seed(0)
    compiled = graphlift.compile(function, fullgraph=True, dynamic=dynamic)
    for sizes in ((4, 6, 8), (5, 7, 40), (3, 4, 18)):
        inputs = [torch.randn(sizes[:rank]) for _ in range(2)]
        assert not close(run(function, inputs), run(compiled, inputs))


# Along the last dim torch's calls stay.
KERNELS = [
    lambda x, y: x[:, 0].sin() * y[:, -1] + x[:, 2],
    lambda x, y: (x[:, 1:] - x[:, :-1]).pow(2) * y[:, 1:],
    lambda x, y: x[..., 1] * y[..., 2],
    lambda x, y: F.pad(x, (0, 0, 1, 2, 0, 1), value=0.5).sin() + F.pad(y, (0, 0, 3, 0, 1, 0)),
    lambda x, y: F.pad(x, (0, 0, -1, 2)).tanh() + F.pad(y, (0, 0, 0, 1)),
    lambda x, y: x.flip(0, 1).relu() * y.flip(1),
    lambda x, y: x.select_scatter(y[:, 0] * 2, 1, 1).exp(),
    lambda x, y: x.slice_scatter(y[:, :2] * 2, 1, 1, 3).exp(),
]


@pytest.mark.parametrize("function", KERNELS)
def test_no_call_is_left_to_torch(function):
    torch.manual_seed(0)
    inputs, before = [torch.randn(4, 6, 8) for _ in range(2)], graphlift.counters()
    expected, got = run(function, inputs), run(graphlift.compile(function, fullgraph=True, dynamic=False), inputs)
    after = graphlift.counters()
    assert not close(expected, got)
    assert after["externals"] == before["externals"] and after["kernels"] > before["kernels"]


def test_what_is_outside_does_not_leak_in(kernels):
    """A NaN or infinity in a gradient stays in its piece."""

    def function(x):
        return x[1:3] * 2, x[0] * 3

    x = torch.randn(4, 5, requires_grad=True)
    gradients = torch.full((2, 5), float("inf")), torch.full((5,), float("nan"))
    expected = torch.autograd.grad(function(x), x, gradients)
    compiled = graphlift.compile(function, fullgraph=True, dynamic=False)
    torch.testing.assert_close(torch.autograd.grad(compiled(x), x, gradients), expected, equal_nan=True)


def test_a_reshape_of_a_view_of_a_cheap_value(kernels):
    x = torch.randn(4, 6, 4)
    for function in (
        lambda x: (x * 2)[1].view(3, 8) + 1,
        lambda x: (x + 1).narrow(0, 1, 2).view(2, 24).sin(),
        lambda x: (x + 1)[1].unsqueeze(0).expand(3, 6, 4)[1].reshape(24) * 2,
        lambda x: torch.cat([(x * 2)[0], (x + 1)[1]]),
    ):
        torch.testing.assert_close(graphlift.compile(function, fullgraph=True, dynamic=False)(x), function(x))
    y = torch.randn(3, 2, 5, requires_grad=True)

    def heads(y):
        a, b = y[:, 0].reshape(15), y[:, 1].reshape(3, 5, 1)
        return (a.sin() * b.reshape(15)).sum()

    expected = torch.autograd.grad(heads(y), y)
    torch.testing.assert_close(torch.autograd.grad(graphlift.compile(heads)(y), y), expected)


ERRORS = [
    (lambda x: x.slice_scatter(torch.ones(1, 5), 0, 1, 4) * 2, "expected src to have a size equal to the slice"),
    (lambda x: x.select_scatter(torch.ones(5), 0, 7) * 2, "index 7 out of range"),
    (lambda x: torch.ops.aten.select_backward(x[0], [6, 5], 0, 7) * 2, "index 7 out of range"),
    (lambda x: torch.ops.aten.select_backward(x[0], [6, 5], 0, -7) * 2, "index -7 out of range"),
    (lambda x: x.flip(0, 0) * 2, "appears multiple times"),
]


@pytest.mark.parametrize("function, words", ERRORS)
def test_errors_are_eagers(function, words):
    for run in (function, graphlift.compile(function)):
        with pytest.raises((RuntimeError, IndexError), match=words):
            run(torch.randn(6, 5))


def test_gradients_that_are_expanded(kernels):
    for function in (
        lambda x: torch.ops.aten.select_backward(x[0, :1], [6, 5], 0, 2) * 2,
        lambda x: torch.ops.aten.select_backward(x[0, 0], [6, 5], 0, 2) * 2,
        lambda x: torch.ops.aten.slice_backward(x[:1], [6, 5], 0, 1, 4, 1) * 2,
    ):
        x = torch.randn(6, 5)
        torch.testing.assert_close(graphlift.compile(function, dynamic=False)(x), function(x))
