"""torch-function, subclasses and what switches them off: results have their classes, and no state is left behind."""

import pytest
import torch

import graphlift


class Named(torch.Tensor):
    """A subclass whose results are of the subclass, as Tensor.__torch_function__ makes them."""


def becomes(x):
    return x.as_subclass(Named) * 2


def breaks_with_it_off(x):
    named = x.as_subclass(Named)
    with torch._C.DisableTorchFunctionSubclass():
        y = x * 2
        total = y.sum().item()
        plain = named * total
    return plain, named * 3, y


def with_it_off(x):
    with torch._C.DisableTorchFunctionSubclass():
        y = x * 2
    return y + 1


def kinds(results):
    results = results if isinstance(results, tuple) else (results,)
    return [(type(t), t.as_subclass(torch.Tensor).tolist()) for t in results]


# What a program's tensors are of a subclass for runs for real, instruction by instruction: graphs of the rest.
GRAPHS = {becomes: 0, breaks_with_it_off: 1, with_it_off: 1}


@pytest.mark.parametrize("program", GRAPHS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("of", [torch.Tensor, Named])
def test_classes_and_state(program, of):
    x = torch.arange(3.0).as_subclass(of)
    compiled = graphlift.compile(program)
    for _ in range(3):
        expected = kinds(program(x))
        assert kinds(compiled(x)) == expected
        assert torch._C._is_torch_function_enabled()
    counts = graphlift.counters()
    breaks = counts["graph_break"].get("a tensor of a kind that is not captured: class Named", 0)
    assert counts["graphs"] == GRAPHS[program]
    assert (breaks > 0) == (of is Named or program is not with_it_off), counts


def test_one_region_with_it_off():
    before = graphlift.graph_count()
    assert torch.equal(graphlift.compile(with_it_off, fullgraph=True)(torch.ones(2)), torch.full((2,), 3.0))
    assert graphlift.graph_count() == before + 1
