"""torch's scan and map, whose rounds become part of the graph, and torch.cond and while_loop where one graph is asked for."""

import pytest
import torch
from torch._higher_order_ops import while_loop
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan

import graphlift

pytestmark = pytest.mark.filterwarnings("ignore")
WEIGHT = torch.linspace(0.5, 1.5, 4)


def sums(x):
    return scan(lambda carry, row: (carry + row, carry * row), x[0] * 0, x)


def of_dicts(x):
    def step(carry, part):
        total = carry["total"] * WEIGHT + part["a"] - part["b"]
        return {"total": total}, (total.sin(), part["a"].sum())

    return scan(step, {"total": x[0].cos()}, {"a": x, "b": x * 2})


def backward_along_columns(x):
    return scan(lambda carry, column: (carry + column.exp(), carry - column), x[:, 0] * 2, x, dim=1, reverse=True)


def along_the_last(x):
    return scan(lambda carry, column: (carry * 0.5 + column, carry.sum()), x[:, 0] * 2, x, dim=-1)


def mapped(x):
    return map_over(lambda row, weight: (row * weight).softmax(-1), x, WEIGHT * 2)


def mapped_pairs(x):
    return map_over(lambda pair: {"sum": pair[0] + pair[1], "norm": pair[0].norm()}, (x, x.sin()))


PROGRAMS = [sums, of_dicts, backward_along_columns, along_the_last, mapped, mapped_pairs]


def leaves(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [leaf for item in (value.values() if isinstance(value, dict) else value) for leaf in leaves(item)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("differentiable", [False, True])
def test_one_graph(program, differentiable):
    compiled = graphlift.compile(program, fullgraph=True)
    for seed in range(2):
        x = torch.randn(3, 4, generator=torch.Generator().manual_seed(seed))
        outcomes = []
        for function in (program, compiled):
            given = x.clone().requires_grad_(differentiable)
            results = leaves(function(given))
            if differentiable:
                results += torch.autograd.grad(sum(result.cos().sum() for result in results), given)
            outcomes.append(results)
        torch.testing.assert_close(outcomes[1], outcomes[0])
    assert graphlift.graph_count() == 1
    assert graphlift.counters()["graph_breaks"] == 0


@pytest.mark.parametrize(
    "program",
    [
        lambda x: scan(lambda carry, row: (carry + row, carry), x[0] * 0, x),
        lambda x: scan(lambda carry, row: (carry.sum(), row * 2), x[0] * 0, x),
        lambda x: scan(lambda carry, row: carry + row, x[0] * 0, x),
        lambda x: scan(lambda carry, row: (carry + row, row * 2), x[0] * 0, x, dim=5),
        lambda x: scan(lambda carry, row: (carry + row, row * 2), 3, x),
        lambda x: map_over(lambda row: 3, x),
        lambda x: map_over(lambda row, other: row * other[0], (x, x[:2]), x),
    ],
    ids=["an alias", "another shape", "no pair", "no such dim", "a number to begin with", "a number", "lengths"],
)
def test_what_torch_refuses(program):
    kinds = []
    for function in (program, graphlift.compile(program)):
        with pytest.raises(Exception) as raised:
            function(torch.randn(3, 4))
        kinds.append(type(raised.value))
    assert kinds[0] is kinds[1]


def test_many_rounds_are_left_to_torch():
    compiled, x = graphlift.compile(sums), torch.randn(80, 4)
    torch.testing.assert_close(compiled(x), sums(x))
    assert graphlift.counters()["graph_breaks"] == 1


def conditional(x):
    return torch.cond(x.sum() > 0, lambda a: a.sin() * WEIGHT, lambda a: a.cos(), (x * 2,)) + 1


def repeated(x):
    count = torch.zeros((), dtype=torch.int64)
    return while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * WEIGHT), (count, x + 1))[1].sin()


@pytest.mark.parametrize("program", [conditional, repeated])
def test_predicates_where_one_graph_is_asked_for(program):
    """Graphs end where a predicate is read, and that is no break: all of it is compiled."""
    compiled = graphlift.compile(program, fullgraph=True)
    for x in (torch.randn(3, 4).abs(), -torch.randn(3, 4).abs(), torch.randn(3, 4).abs()):
        torch.testing.assert_close(compiled(x), program(x))
    assert graphlift.counters()["graph_breaks"] == 0
    assert graphlift.graph_count() >= 2


def test_a_branch_of_the_programs_own_is_still_a_break():
    def program(x):
        return torch.cond(x.sum() > 0, lambda a: a.sin() if a.max() > 9 else a * 2, lambda a: a.cos(), (x,))

    with pytest.raises(graphlift.GraphBreakError, match="a branch depends on"):
        graphlift.compile(program, fullgraph=True)(torch.ones(3))


def test_what_torchs_cond_would_refuse_is_a_break():
    def program(x):
        return torch.cond(x.sum() > 0, lambda a: torch.rand(3) * a, lambda a: a.cos(), (x,))

    with pytest.raises(graphlift.GraphBreakError):
        graphlift.compile(program, fullgraph=True)(torch.ones(3, requires_grad=True))
