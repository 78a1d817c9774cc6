"""Functions of float32 that kernels have their own code for: how far they are from exact over all exponents, and what
has no finite result."""

import pytest
import torch

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")

# Units in the last place of the exact result. Denormals of a sigmoid are 0, as in eager.
FUNCTIONS = [
    (torch.exp, 1.1),
    (torch.log, 0.8),
    (torch.tanh, 5),
    (torch.erf, 6),
    (lambda x: torch.sigmoid(x.clamp(min=-87)), 2.5),
]


def all_exponents(step):
    """Finite float32 of either sign, each step-th."""
    bits = torch.arange(0, 0x7F800000, step, dtype=torch.int32)
    x = bits.view(torch.float32)
    return torch.cat([x, -x])


def ulps(got, exact):
    _, exponent = torch.frexp(exact)
    unit = torch.ldexp(torch.ones_like(exact), (exponent - 24).clamp(min=-149))
    return (got.double() - exact).abs() / unit


@pytest.mark.parametrize("function, bound", FUNCTIONS, ids=["exp", "log", "tanh", "erf", "sigmoid"])
@pytest.mark.parametrize("lanes", ["many", "one"])
def test_distance_from_exact(function, bound, lanes):
    before = graphlift.counters()["kernels"]
    if lanes == "many":
        x = all_exponents(1009)
        got = graphlift.compile(function, dynamic=False)(x)
    else:  # of what is made once per row
        x = all_exponents(1000003)
        rows = x.view(-1, 1).expand(-1, 70).contiguous()
        got = graphlift.compile(lambda rows: function(rows.amax(1)), dynamic=False)(rows)
    exact = function(x.double())
    assert graphlift.counters()["kernels"] > before
    assert torch.equal(got.isnan(), exact.isnan())
    within = exact.abs() < 3.4028235677973366e38  # what rounds to a number
    assert torch.equal(got[~within & ~exact.isnan()], exact[~within & ~exact.isnan()].float())
    assert ulps(got[within], exact[within]).max() <= bound


@pytest.mark.parametrize("function, bound", FUNCTIONS, ids=["exp", "log", "tanh", "erf", "sigmoid"])
def test_what_is_not_finite(function, bound):
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([inf, -inf, nan, 0.0, -0.0, 1e-45, -1e-45, 88.7228394, 88.72284, -103.97208, -103.98, 200, -200])
    for many in (x, x.repeat(40)):
        torch.testing.assert_close(graphlift.compile(function, dynamic=False)(many), function(many), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("dim", [0, 1])
def test_extremes_keep_nan(dtype, dim):
    x = torch.randn(70, 90, dtype=dtype)
    x[3, 5] = x[69, 0] = x[0, 89] = float("nan")
    x[7], x[:, 11] = float("-inf"), float("-inf")
    run = graphlift.compile(lambda x: (x.amax(dim), x.amin(dim)), dynamic=False)
    torch.testing.assert_close(run(x), (x.amax(dim), x.amin(dim)), rtol=0, atol=0, equal_nan=True)


# What eager does on a CPU: a bound leaves a zero its sign. The larger of two zeros depends on the place in eager.
BOUNDS = {
    "relu": torch.relu,
    "at least 0": lambda x: x.clamp(min=0),
    "at most 0": lambda x: x.clamp(max=0),
    "within 0 and 6": lambda x: x.clamp(0, 6),
    "relu6": torch.nn.functional.relu6,
    "hardtanh": torch.nn.functional.hardtanh,
    "nan as bound": lambda x: x.clamp(min=float("nan")),
    "absolute": torch.abs,
    "opposite": torch.neg,
    "rounded": lambda x: (x - 0.2).round(),
    "towards 0": lambda x: (x - 0.3).trunc(),
    "product": lambda x: x * 3,
    "plus 0": lambda x: x + 0,
    "minus 0": lambda x: x - 0,
    "root": torch.sqrt,
    "remainder": lambda x: torch.fmod(x, 3.0),
    "leaky relu": torch.nn.functional.leaky_relu,
    "elu": torch.nn.functional.elu,
    "hardshrink": torch.nn.functional.hardshrink,
    "hardswish": torch.nn.functional.hardswish,
    "tanh": torch.tanh,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", BOUNDS)
def test_signs_of_zeros(name, dtype):
    x = torch.tensor([-0.0, 0.0, -0.0, 1.5, float("nan"), -2.5, -0.0] * 9, dtype=dtype)
    for x in (x, x[:1]):
        before = graphlift.counters()["kernels"]
        expected, got = BOUNDS[name](x) * 1, graphlift.compile(lambda x: BOUNDS[name](x) * 1, dynamic=False)(x)
        assert graphlift.counters()["kernels"] > before
        torch.testing.assert_close(got, expected, equal_nan=True)
        numbers = ~expected.isnan()
        assert torch.equal(torch.signbit(got)[numbers], torch.signbit(expected)[numbers])
