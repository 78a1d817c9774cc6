"""Operators of torch.library that write into arguments: one call of the graph, on copies, whose results are written."""

import pytest
import torch
from judging import check, regions, same

import graphlift

pytestmark = pytest.mark.without_passes

RAN = []  # what kernels did, in order


@torch.library.custom_op("graphlift_writes::accumulate", mutates_args=("total",))
def accumulate(total: torch.Tensor, x: torch.Tensor) -> None:
    RAN.append("accumulate")
    total.add_(x)


@torch.library.custom_op("graphlift_writes::swap", mutates_args=("a", "b"))
def swap(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    RAN.append("swap")
    before = a.clone()
    a.copy_(b)
    b.copy_(before)
    return before.sum()


@torch.library.custom_op("graphlift_writes::fill_all", mutates_args=("tensors",))
def fill_all(tensors: list[torch.Tensor], value: float) -> None:
    RAN.append("fill_all")
    for tensor in tensors:
        tensor.fill_(value)


@torch.library.custom_op("graphlift_writes::without_fake", mutates_args=("x",))
def without_fake(x: torch.Tensor) -> torch.Tensor:
    RAN.append("without_fake")
    return x.neg_().clone()


@torch.library.custom_op("graphlift_writes::maybe", mutates_args=("x",))
def maybe(x: torch.Tensor | None, y: torch.Tensor) -> None:
    RAN.append("maybe")
    if x is not None:
        x.add_(y)


swap.register_fake(lambda a, b: a.new_empty(()))

LIBRARY = torch.library.Library("graphlift_writes", "FRAGMENT")


def bump(x, by=1):
    RAN.append("bump")
    return x.add_(by)


LIBRARY.define("bump(Tensor(a!) x, int by=1) -> Tensor(a!)")
LIBRARY.impl("bump", bump, "CPU")
BUMP = torch.ops.graphlift_writes.bump  # torch makes it when it is first asked for


def into_a_fresh_tensor(x, y):
    total = x * 2
    accumulate(total, y)
    return total + 1


def into_an_argument(x, y):
    z = y.sin()
    accumulate(x, z)
    return x * z


def into_a_view(x, y):
    total = torch.zeros(2, 3)
    accumulate(total[0], x)
    accumulate(total.view(-1)[3:], y)
    return total


def into_columns(x, y):
    total = torch.zeros(3, 2)
    accumulate(total[:, 1], x)
    accumulate(total.t()[0], y)
    return total, total.sum(0)


def into_both(x, y):
    total = swap(x, y)
    return total + x - y


def into_a_list(x, y):
    z = x + y
    fill_all([x, z], 2.5)
    return x + z, y


def through_torch_ops(x, y):
    torch.ops.graphlift_writes.accumulate(x, y)
    torch.ops.graphlift_writes.accumulate.default(x, y)
    return x.exp()


def that_returns_what_it_writes(x, y):
    z = BUMP(x, 3)
    BUMP(y)
    return z * y, z


def more_than_once(x, y):
    total = torch.zeros(3)
    for _ in range(3):
        accumulate(total, x)
        x = x + total
    return total, x


# What runs, in one graph.
WRITES = {
    into_a_fresh_tensor: ["accumulate"],
    into_an_argument: ["accumulate"],
    into_a_view: ["accumulate"] * 2,
    into_columns: ["accumulate"] * 2,
    into_both: ["swap"],
    into_a_list: ["fill_all"],
    through_torch_ops: ["accumulate"] * 2,
    that_returns_what_it_writes: ["bump"] * 2,
    more_than_once: ["accumulate"] * 3,
}


def two():
    return torch.randn(3), torch.randn(3)


@pytest.mark.parametrize("program", WRITES, ids=lambda f: f.__name__)
def test_one_graph(program):
    check(program, two, graphs=1, breaks=0)
    RAN.clear()
    graphlift.compile(program)(*two())
    assert RAN == WRITES[program]  # never while it is captured


def test_versions_and_views_of_what_is_written():
    def program(x, y):
        accumulate(x[:2], y[1:])
        return x * 2

    compiled = graphlift.compile(program)
    for _ in range(3):
        x, y = torch.arange(3.0), torch.ones(3)
        a, b = x.clone(), y.clone()
        same([compiled(x, y), x, y], [program(a, b), a, b])
        assert x._version > 0
    regions(1, 0)


def test_sizes_that_vary():
    compiled = graphlift.compile(into_an_argument)
    for n in (3, 4, 5, 6):
        x, y = torch.randn(n), torch.randn(n)
        a, b = x.clone(), y.clone()
        same([compiled(x, y), x], [into_an_argument(a, b), a])
    regions(2, 0)


def test_gradients_go_around_what_is_written():
    def program(x, w):
        total = torch.zeros(3)
        accumulate(total, x.detach())
        return (total * w).sum()

    check(program, lambda: (torch.randn(3), torch.randn(3, requires_grad=True)), graphs=1, breaks=0)


def test_writing_into_what_backward_needs_is_eagers_error():
    def program(x, w):
        y = w * x
        z = (y * y).sum()
        accumulate(y.detach(), x)
        return z

    def words(function):
        loss = function(torch.ones(3), torch.ones(3, requires_grad=True))
        with pytest.raises(RuntimeError) as caught:
            loss.backward()
        return str(caught.value).split(":")[0]

    compiled = graphlift.compile(program)
    for _ in range(2):
        assert words(compiled) == words(program)


def shares_its_memory(x, y):
    accumulate(x, x)
    swap(x, x)
    return x + y


def shares_a_part(x, y):
    accumulate(x[:2], x[1:])
    return x + y


def an_optional_one(x, y):
    maybe(x, y)
    maybe(None, y)
    return x + y


def of_another_kind(x, y):
    return without_fake(x) + y


@pytest.mark.parametrize(
    "program", [shares_its_memory, shares_a_part, an_optional_one, of_another_kind], ids=lambda f: f.__name__
)
def test_what_is_not_known_runs_in_eager(program):
    counts = check(program, lambda: (torch.arange(3.0), torch.ones(3)))
    assert counts["graph_breaks"] >= 1


def test_two_arguments_that_share_their_memory():
    compiled = graphlift.compile(into_both)
    for _ in range(2):
        for shared in (False, True):
            base, twin = torch.arange(4.0), torch.arange(4.0)
            args = (base[:2], base[2:]) if shared else (base[:2], torch.ones(2))
            twins = (twin[:2], twin[2:]) if shared else (twin[:2], torch.ones(2))
            same([compiled(*args), base], [into_both(*twins), twin])
