"""cat and stack of parts that are computed: one kernel fills them, whatever memory the parts read."""

import pytest
import torch

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")


def rotated(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


def twice(y):
    return torch.cat([y, y + 1, y.flip(0)], 1)


# Programs of one or two square inputs, and the calls that are left to torch.
PROGRAMS = {
    "halves that change places": (lambda a, b: rotated(a, b, b + 1), 0),
    "stacked in front": (lambda a, b: torch.stack([a * 2, b + 1]), 0),
    "stacked inside": (lambda a, b: torch.stack([a * 2, b.t() + 1, a], 1) * 2, 0),
    "stacked behind": (lambda a, b: torch.stack([a * b, b.sin()], -1).flatten(-2), 1),
    "a part and its transpose": (lambda a, b: torch.cat([a.exp(), a.exp().t() * 2], 0), None),
    "a part of a part": (lambda a, b: twice(a.exp()), None),
    "with a reduction": (lambda a, b: torch.cat([a.softmax(-1), b * 2, a.softmax(0)], 1), None),
    "with a product": (lambda a, b: torch.cat([a @ b, b * 2, (a @ b).relu()], 1), None),
    "of joined parts": (lambda a, b: torch.cat([torch.cat([a * 2, b * 3]), torch.cat([b * 4, a * 5])], 1), None),
    "of two dtypes": (lambda a, b: torch.cat([a.double(), b * 2]), None),
    "of one": (lambda a, b: torch.stack([a * 2]), 0),
    "of numbers": (lambda a, b: torch.stack([a.sum(), b.mean(), a[0, 0] * 2]), None),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name, dynamic):
    function, left = PROGRAMS[name]
    torch.manual_seed(0)
    before = graphlift.counters()
    compiled = graphlift.compile(function, fullgraph=True, dynamic=dynamic)
    with torch.no_grad():
        inputs = [torch.randn(6, 6) for _ in range(2)]
        assert compiled(*inputs).stride() == function(*inputs).stride()
        torch.testing.assert_close(compiled(*inputs), function(*inputs))
    after = graphlift.counters()
    assert after["kernels"] > before["kernels"]
    if left is not None and not dynamic:
        assert after["externals"] - before["externals"] == left
    inputs = [torch.randn(6, 6, requires_grad=True) for _ in range(2)]
    expected = torch.autograd.grad(function(*inputs).square().sum(), inputs, allow_unused=True)
    got = torch.autograd.grad(compiled(*inputs).square().sum(), inputs, allow_unused=True)
    torch.testing.assert_close(got, expected)


def test_rows_of_which_all_is_masked():
    def function(x):
        return torch.ops.aten._safe_softmax(torch.where(x > 0, x, float("-inf")), -1) * 2

    x = torch.randn(40, 3)
    x[3] = -1
    x[4, 1] = float("nan")
    before = graphlift.counters()
    got = graphlift.compile(function, fullgraph=True)(x)
    after = graphlift.counters()
    torch.testing.assert_close(got, function(x), equal_nan=True)
    assert after["externals"] == before["externals"] and after["kernels"] > before["kernels"]
