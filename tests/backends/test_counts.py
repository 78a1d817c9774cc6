"""Floats made of sizes (degrees of freedom, one over a length) vary with them: no size is compiled for anew."""

import pytest
import torch

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")

PROGRAMS = {
    "var": lambda x: x.var(0),
    "var of all": lambda x: x.var(),
    "a correction that is no int": lambda x: torch.var(x, 0, correction=1.5),
    "std": lambda x: x.std(0),
    "std of all": lambda x: x.std(),
    "var_mean": lambda x: torch.var_mean(x, 0)[0],
    "std_mean": lambda x: torch.std_mean(x, 0)[0],
    "one over a length": lambda x: x * (1.0 / x.shape[0]),
    "a ratio": lambda x: x * (x.shape[0] / (x.shape[0] + 2)),
    "a root": lambda x: x * x.shape[0] ** -0.5,
    "a sum of floats": lambda x: x * (x.shape[0] + 0.5) - (2 * x.shape[0] - 0.25),
}
SIZES = (8, 12, 20, 33, 700)


def gradient(function, x):
    x = x.clone().requires_grad_()
    result = function(x)
    (made,) = torch.autograd.grad(result.square().sum(), x)
    return result, made


@pytest.mark.parametrize("program", PROGRAMS)
def test_values_and_gradients_with_one_graph(program):
    torch.manual_seed(0)
    before = graphlift.counters()
    compiled = graphlift.compile(PROGRAMS[program], fullgraph=True, dynamic=True)
    for size in SIZES:
        x = torch.randn(size, 6)
        torch.testing.assert_close(gradient(compiled, x), gradient(PROGRAMS[program], x), rtol=1e-4, atol=1e-5)
    after = graphlift.counters()
    assert after["graphs"] == before["graphs"] + 1 and after["kernels"] > before["kernels"]


def test_degrees_of_freedom_that_run_out():
    """Their number decides: another graph, where eager's answer is infinite or not a number."""
    compiled = graphlift.compile(lambda x: torch.var(x, 0, correction=3), fullgraph=True, dynamic=True)
    for size in (9, 4, 3, 2, 5, 30):
        x = torch.randn(size, 6)
        with pytest.warns() if size <= 3 else torch.no_grad():
            expected = torch.var(x, 0, correction=3)
        torch.testing.assert_close(compiled(x), expected, equal_nan=True)


def test_a_float_of_a_size_leaves():
    def function(x):
        return x * 2, 1 / x.shape[0], x.shape[0] ** 0.5, x.shape[0] / 4 - 1

    before = graphlift.counters()["graphs"]
    compiled = graphlift.compile(function, fullgraph=True, dynamic=True)
    for size in SIZES:
        got, *floats = compiled(torch.ones(size))
        assert floats == list(function(torch.ones(size))[1:]) and all(type(each) is float for each in floats)
    assert graphlift.counters()["graphs"] == before + 1


def test_decisions_on_floats_of_sizes():
    def function(x):
        return x * 2 if x.shape[0] / 4 > 5 else x * x.shape[0] ** 0.5

    compiled = graphlift.compile(function, fullgraph=True, dynamic=True)
    for size in SIZES:
        x = torch.randn(size)
        torch.testing.assert_close(compiled(x), function(x))


def test_a_length_that_is_zero():
    def function(x):
        return x.sum() + 1 / x.shape[0]

    compiled = graphlift.compile(function, dynamic=True)
    torch.testing.assert_close(compiled(torch.ones(3)), function(torch.ones(3)))
    with pytest.raises(ZeroDivisionError):
        compiled(torch.ones(0))
    torch.testing.assert_close(compiled(torch.ones(5)), function(torch.ones(5)))
