"""Bound methods of C types that come from outside: the object behind them is guarded, and changed at each call."""

import collections
import functools

import pytest
import torch

import graphlift


def called(x, method):
    method(x.dim())
    return x * 2


def mapped(x, method):
    x = x + 1
    list(map(method, [x.dim(), 2]))
    return x


def kept_over_a_break(x, items):
    append = items.append
    x = x + 1
    graphlift.graph_break()
    append(x.dim())
    return x * 2


def asked(x, method):
    return x * method(1)


def popped(x, method):
    return x * method()


@pytest.mark.parametrize("program", [called, mapped])
@pytest.mark.parametrize("make", [list, collections.deque, set], ids=lambda kind: kind.__name__)
def test_containers_get_what_is_added(program, make):
    x, compiled = torch.ones(2), graphlift.compile(program)
    for _ in range(2):  # another container in the second round
        mine, eager = make(), make()
        for _ in range(3):
            add, eager_add = (box.add if make is set else box.append for box in (mine, eager))
            assert torch.equal(compiled(x, add), program(x, eager_add))
            assert mine == eager and len(mine) >= 1
    assert graphlift.graph_count() >= 1


def test_a_method_on_the_stack_of_a_break():
    x, compiled, items = torch.ones(2), graphlift.compile(kept_over_a_break), []
    for count in range(1, 4):
        compiled(x, items)
        assert items == [1] * count
    assert graphlift.graph_count() == 2 and graphlift.counters()["graph_breaks"] == 1


def test_what_is_read_is_guarded():
    x, compiled = torch.ones(1), graphlift.compile(asked)
    for value in (3, 4, 5):
        assert compiled(x, {1: value}.get).item() == value
        assert compiled(x, [0, value].__getitem__).item() == value
        assert compiled(x, value.__add__).item() == value + 1
    assert graphlift.graph_count() == 6  # from the third value on what is read is an input


def test_what_moves_on_is_moved():
    x, compiled = torch.ones(1), graphlift.compile(popped)
    steps, queue = iter([1, 2, 3]), collections.deque([4, 5, 6])
    assert [compiled(x, steps.__next__).item() for _ in range(3)] == [1, 2, 3]
    assert [compiled(x, queue.popleft).item() for _ in range(3)] == [4, 5, 6]
    assert graphlift.graph_count() >= 1


def test_partials_and_tensors():
    x, items, total = torch.ones(1), [], torch.zeros(1)
    compiled = graphlift.compile(lambda x, method: (method(), x * 2)[1])
    for count in range(1, 4):
        compiled(x, functools.partial(items.append, 3))
        compiled(x, functools.partial(total.add_, 1))
        assert items == [3] * count and total.item() == count
    assert graphlift.graph_count() >= 2
