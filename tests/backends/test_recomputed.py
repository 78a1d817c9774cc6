"""What is computed again elsewhere is the same number to the last bit: equality with a largest element depends on it."""

import pytest
import torch

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")


@pytest.mark.parametrize("name", ["amax", "amin"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_gradients_of_the_largest(name, dtype):
    def function(a, b):
        square = a * a
        x = (square + b * b + 1).sqrt()
        return square, x, x / (x.abs() + 1), x - getattr(x, name)(-1, keepdim=True)

    torch.manual_seed(0)
    before = graphlift.counters()["kernels"]
    inputs = [torch.randn(33, 40).to(dtype).requires_grad_() for _ in range(2)]
    outputs = function(*inputs)
    gradients = [torch.randn_like(output) for output in outputs]
    expected = torch.autograd.grad(outputs, inputs, gradients)
    compiled = graphlift.compile(function, options={"emulate_precision_casts": True})
    torch.testing.assert_close(torch.autograd.grad(compiled(*inputs), inputs, gradients), expected)
    assert graphlift.counters()["kernels"] > before


def test_sums_of_products_are_eagers_to_the_last_bit():
    def function(x, y, z):
        return x * y + z, x * y - z, (x * y + z) * x + y

    torch.manual_seed(0)
    inputs = [torch.randn(1000) for _ in range(3)]
    torch.testing.assert_close(graphlift.compile(function)(*inputs), function(*inputs), rtol=0, atol=0)
