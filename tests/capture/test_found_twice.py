"""An object from outside that is found on two paths: that both lead to it is guarded, or that they do not."""

import enum

import pytest
import torch
from judging import regions

import graphlift


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Holder:
    def __init__(self, v=0):
        self.v = v


class Settings:
    one = Holder(7)
    table = [1]


ONE = Settings.one
NUMBER = 3


def counter(n):
    def increase():
        nonlocal n
        n += 1
        return n

    def get():
        return n

    return increase, get


def counters():
    (up, get), (other_up, other_get) = counter(1), counter(10)
    return [(up, get), (up, other_get), (other_up, get), (other_up, other_get)]


def with_default(x, *, k=2):
    return x * k


def with_attribute(x):
    return x * 2


with_attribute.number = 4
KEPT = Holder(3)
ANOTHER = [(vars(KEPT), KEPT), ({"v": 5}, KEPT), (vars(KEPT), Holder(8))]

# name -> arguments of calls that differ in what is found twice, and the program.
PATHS = {
    "member is": ([(Colour.RED,), (Colour.BLUE,)], lambda x, a: x * (2 if a is Colour.RED else 1)),
    "member ==": ([(Colour.RED,), (Colour.BLUE,)], lambda x, a: x * (2 if a == Colour.RED else 1)),
    "member in": ([(Colour.RED,), (Colour.BLUE,)], lambda x, a: x * (2 if a in (Colour.RED,) else 1)),
    "another member in": ([(Colour.BLUE,), (Colour.RED,)], lambda x, a: x * (2 if a in (Colour.RED,) else 1)),
    "class attribute": ([(ONE,), (Holder(),)], lambda x, a: x * (2 if a is Settings.one else 1)),
    "list of a class": ([(Settings.table,), ([2],)], lambda x, a: x * a[0] + Settings.table[0]),
    "global": ([(ONE,), (Holder(3),)], lambda x, a: x * a.v + ONE.v),
    "globals": ([(globals(),), ({"NUMBER": 4},)], lambda x, d: x * d["NUMBER"] + NUMBER),
    "closures": (counters(), lambda x, up, get: x * get()),
    "attributes first": (ANOTHER, lambda x, d, o: x * d["v"] + o.v),
    "object first": ([given[::-1] for given in ANOTHER], lambda x, o, d: x * o.v + d["v"]),
    "defaults": (
        [(with_default.__kwdefaults__, with_default), ({"k": 4}, with_default)],
        lambda x, d, f: d["k"] + f(x),
    ),
    "attributes of a function": (
        [(vars(with_attribute), with_attribute), ({"number": 5}, with_attribute)],
        lambda x, d, f: x * d["number"] + f.number,
    ),
}


@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("name", PATHS)
def test_paths_to_one_object(name, turn):
    calls, program = PATHS[name]
    calls = calls[turn:] + calls[:turn]
    compiled = graphlift.compile(program)
    for given in calls * 2:
        assert torch.equal(compiled(torch.ones(2), *given), program(torch.ones(2), *given))
    assert graphlift.graph_count() >= 2 and graphlift.counters()["graph_breaks"] == 0


def test_a_changed_cell_that_two_functions_share():
    def program(x, up, get):
        return x * 2, up(), get()

    compiled = graphlift.compile(program)
    for _ in range(2):
        mine, eager = counters(), counters()
        for given, same in zip(mine, eager, strict=True):
            assert compiled(torch.ones(2), *given)[1:] == program(torch.ones(2), *same)[1:]
    regions(graphlift.graph_count(), 0)
    assert graphlift.graph_count() >= 2
