"""What native code does when it can't go on as planned: results lie otherwise, or an operator breaks its promise."""

import pytest
import torch

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")

CALLS = {"turned": 0, "doubled": 0}
BREAKS_FROM = {"doubled": 0}


@torch.library.custom_op("graphlift_failures::turned", mutates_args=())
def turned(x: torch.Tensor) -> torch.Tensor:
    CALLS["turned"] += 1
    return (x * 3).t().contiguous().t()


@turned.register_fake
def _(x):
    return torch.empty_like(x)  # row by row; the real one is column by column


@torch.library.custom_op("graphlift_failures::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    CALLS["doubled"] += 1
    broken = CALLS["doubled"] > BREAKS_FROM["doubled"]
    return (x * 2).double() if broken else x * 2


@doubled.register_fake
def _(x):
    return torch.empty_like(x)  # float32, as long as the operator keeps its promise


@pytest.fixture(autouse=True)
def count_anew():
    CALLS.update(turned=0, doubled=0)
    BREAKS_FROM.update(doubled=0)


def after_turning(x):
    return torch.relu(turned(x)) + 1


def after_doubling(x):
    return torch.relu(doubled(x)) + 1


def kernels_of(function, *args):
    before = graphlift.counters()["kernels"]
    result = function(*args)
    return result, graphlift.counters()["kernels"] - before


def test_a_result_in_another_layout_is_read_right():
    x = torch.randn(5, 7)
    compiled = graphlift.compile(after_turning)
    got, kernels = kernels_of(compiled, x)
    assert kernels == 1 and CALLS["turned"] == 1, "the operator ran while capturing"
    before = graphlift.counters()["frameless_hits"]
    assert torch.equal(got, after_turning(x)) and torch.equal(compiled(x), after_turning(x))
    assert graphlift.counters()["frameless_hits"] == before + 1


def test_a_broken_promise_is_an_internal_error():
    with pytest.raises(graphlift.InternalError, match="another dtype than its shape rule says"):
        graphlift.compile(after_doubling)(torch.randn(4))


def test_a_broken_promise_in_a_later_call_is_an_internal_error():
    BREAKS_FROM["doubled"] = 2
    compiled = graphlift.compile(after_doubling)
    for _ in range(2):
        compiled(torch.randn(4))
    with pytest.raises(graphlift.InternalError, match="another dtype"):
        compiled(torch.randn(4))


@pytest.mark.parametrize("good_calls", [0, 2], ids=["first call", "without a frame"])
def test_what_acted_outside_is_never_run_twice(good_calls, monkeypatch):
    """A custom operator may have done anything, so the error is raised where others fall back."""
    monkeypatch.setenv("GRAPHLIFT_STRICT", "0")
    BREAKS_FROM["doubled"] = good_calls
    compiled = graphlift.compile(after_doubling)
    for _ in range(good_calls):
        compiled(torch.randn(4))
    with pytest.raises(graphlift.InternalError, match="another dtype"):
        compiled(torch.randn(4))
    assert CALLS["doubled"] == good_calls + 1


@pytest.fixture
def broken_kernel():
    """torch's kernel of an operator without effects, which answers in another dtype from now on when told to."""
    state = {"broken": False}
    library = torch.library.Library("aten", "IMPL")
    library.impl(
        "special_i1e", lambda x: torch.ones_like(x, dtype=torch.float64 if state["broken"] else x.dtype), "CPU"
    )
    yield state
    library._destroy()


@pytest.mark.parametrize("good_calls", [0, 2], ids=["first call", "without a frame"])
def test_an_internal_error_falls_back_to_eager_with_one_warning(good_calls, broken_kernel, monkeypatch):
    def function(x):
        return torch.relu(torch.special.i1e(x)) + 1

    monkeypatch.setenv("GRAPHLIFT_STRICT", "0")
    x, compiled = torch.randn(4), graphlift.compile(function)
    broken_kernel["broken"] = good_calls == 0
    for _ in range(good_calls):
        assert compiled(x).dtype == torch.float32
    broken_kernel["broken"] = True
    before = graphlift.counters()["internal_errors"]
    with pytest.warns(UserWarning, match="internal error") as told:
        got = [compiled(x) for _ in range(3)]
    assert len(told) == 1 and graphlift.counters()["internal_errors"] == before + 1
    for result in got:
        assert result.dtype == torch.float64 and torch.equal(result, function(x))


def test_gradients_of_a_depthwise_convolution_over_half_of_the_channels():
    """oneDNN has a reference loop alone for weights' gradients in this layout."""
    model = torch.nn.Conv1d(8, 8, 4, groups=8, padding=3)

    def function(x):
        return model(x.transpose(1, 2).chunk(2, 1)[0])[..., :16].sin()

    leaves = [torch.randn(2, 16, 16, requires_grad=True), *model.parameters()]
    before = graphlift.counters()["graphs"]
    got = torch.autograd.grad(graphlift.compile(function, dynamic=False)(leaves[0]).sum(), leaves)
    torch.testing.assert_close(got, torch.autograd.grad(function(leaves[0]).sum(), leaves), rtol=1e-4, atol=1e-5)
    assert graphlift.counters()["graphs"] > before
