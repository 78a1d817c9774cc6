"""Passes and stages can be left out one by one and all together: results stay, and the code shows that they are out."""

import pytest
import torch
import torch.nn.functional as F
from closeness import close

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")


def step(x, w, b):
    """Something for each pass: equal calls, views of the same shape, calls that nobody reads, products, chains, norms."""
    unused = x.cos()
    y = F.gelu(x.view(x.shape) @ w + b) + torch.tanh(x @ w)
    z = F.layer_norm(y.detach() * 0.5 + y, (y.shape[-1],))
    del unused
    return torch.cat([z.softmax(-1), torch.tanh(x @ w)], -1)


def outcome(function):
    torch.manual_seed(2)
    inputs = [torch.randn(*shape, requires_grad=True) for shape in ((24, 16), (16, 32), (32,))]
    before = graphlift.counters()
    result = function(*inputs)
    result.pow(2).sum().backward()
    after = graphlift.counters()
    made = {name: after[name] - before[name] for name in ("graphs", "kernels", "natives", "externals")}
    return [result.detach(), *(each.grad for each in inputs)], made


def compiled(skip):
    return graphlift.compile(step, options={"skip_passes": skip})


@pytest.mark.parametrize("skip", ["", *graphlift.list_passes(), "all", "fusion, inlining"])
def test_results_without(skip):
    eager, _ = outcome(step)
    got, made = outcome(compiled(skip))
    assert made["graphs"] == 1 and made["kernels"] > 0
    assert not close(eager, got)


def test_what_is_out_shows():
    _, usual = outcome(compiled(""))
    assert outcome(compiled("fusion"))[1]["kernels"] > usual["kernels"]
    assert outcome(compiled("common_subexpressions,fusion"))[1]["natives"] > usual["natives"]
    none = outcome(compiled("all"))[1]
    assert none["kernels"] > outcome(compiled("fusion"))[1]["kernels"]


def test_the_environment_says_so_too(monkeypatch):
    monkeypatch.setenv("GRAPHLIFT_SKIP_PASSES", "all")
    _, all_out = outcome(graphlift.compile(step))
    assert all_out == outcome(compiled("all"))[1]
