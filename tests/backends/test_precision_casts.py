"""`emulate_precision_casts`: fused kernels round 16-bit floats where eager stores them, so results are the same bits."""

import pytest
import torch
import torch.nn.functional as F

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")

EMULATE = {"emulate_precision_casts": True}
CHAINS = {
    "arithmetic": lambda x, y: (x * y + 1) * 0.3 - y / (x.abs() + 1),
    "chosen": lambda x, y: torch.where(x > y, x * 3, y - x).clamp(-2, 2) + x,
    "activations": lambda x, y: F.relu(x * 1.7 + y) * F.leaky_relu(y - x, 0.1) + F.hardtanh(x * y),
    "mixed": lambda x, y: (x.float() * y).to(x.dtype) * y + x,
    "largest": lambda x, y: (x * y + y).amax(-1, keepdim=True) * x - y,
}


def compiled_once(function, options, *inputs):
    compiled = graphlift.compile(function, options=options)
    before = graphlift.counters()["kernels"]
    result = compiled(*inputs)
    assert graphlift.counters()["kernels"] == before + 1, "not one kernel"
    return result


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", CHAINS)
def test_same_bits_as_eager(name, dtype):
    torch.manual_seed(5)
    x, y = torch.randn(65, 131).to(dtype), torch.randn(65, 131).to(dtype)
    assert torch.equal(compiled_once(CHAINS[name], EMULATE, x, y), CHAINS[name](x, y))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_without_it_more_bits_are_kept(dtype):
    torch.manual_seed(5)
    x, y = torch.randn(65, 131).to(dtype), torch.randn(65, 131).to(dtype)
    chain = CHAINS["arithmetic"]
    got, exact = compiled_once(chain, {}, x, y), chain(x.double(), y.double())
    assert not torch.equal(got, chain(x, y))
    assert (got - exact).abs().mean() < (chain(x, y) - exact).abs().mean()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_gradients_too(dtype):
    torch.manual_seed(5)

    def run(function):
        x, y = (torch.randn(33, 40).to(dtype).requires_grad_() for _ in range(2))
        torch.manual_seed(6)
        before = graphlift.counters()["kernels"]
        out = function(x, y)
        out.backward(torch.randn(33, 40).to(dtype))
        return (out, x.grad, y.grad), graphlift.counters()["kernels"] - before

    torch.manual_seed(7)
    eager, _ = run(CHAINS["arithmetic"])
    torch.manual_seed(7)
    got, kernels = run(graphlift.compile(CHAINS["arithmetic"], options=EMULATE))
    assert kernels == 2, "forward and backward are a kernel each"
    assert all(torch.equal(a, b) for a, b in zip(eager, got, strict=True))


def test_float32_stays_as_it_is():
    x, y = torch.randn(16, 16), torch.randn(16, 16)
    chain = CHAINS["arithmetic"]
    assert torch.equal(compiled_once(chain, EMULATE, x, y), compiled_once(chain, {}, x, y))
