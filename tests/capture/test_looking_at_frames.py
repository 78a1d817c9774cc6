"""Programs that look at frames, modules' globals and classes while they compute on tensors."""

import inspect
import sys

import torch
from judging import check
from torch.utils._python_dispatch import TorchDispatchMode

import graphlift

COUNTER = 1


def two(k):
    return (torch.ones(2) * (k + 1),)


def all_ways(x):
    y = x * 2
    z = y + 1
    graphlift.graph_break()
    return z, sorted(locals()), vars()["y"], eval("y + x"), sys._getframe().f_locals["x"], sorted(dir())


def test_local_variables_are_all_there():
    check(all_ways, two, breaks=5)


def asks_its_caller():
    frame = inspect.currentframe().f_back
    return frame.f_locals["q"], frame.f_code.co_name


def asked(x):
    q = x.shape[0] + 1
    return x * asks_its_caller()[0]


def asked_for_a_tensor(x):
    q = x * 2
    return asks_its_caller()[0] + 1


def test_a_callee_reads_its_callers_variables():
    check(asked, lambda k: (torch.ones(2 + k),), graphs=2, breaks=0)
    check(asked_for_a_tensor, two, graphs=1, breaks=0)


def test_globals_are_read_and_written_through_their_dict():
    global COUNTER
    compiled = graphlift.compile(lambda x: x * globals()["COUNTER"] + sys._getframe().f_globals["COUNTER"])
    for COUNTER in (1, 2, 3):  # noqa: PLW0602
        assert compiled(torch.ones(1)).item() == 2 * COUNTER
    writes = graphlift.compile(lambda x: (globals().__setitem__("WRITTEN", 3), x * 2)[1])
    for _ in range(2):
        globals().pop("WRITTEN", None)
        assert writes(torch.ones(1)).item() == 2 and globals()["WRITTEN"] == 3


def made_by_a_metaclass(x):
    class Meta(type):
        def __new__(cls, name, bases, namespace, **more):
            namespace["k"] = more.get("k", 0)
            graphlift.graph_break()
            return super().__new__(cls, name, bases, namespace)

    class A(metaclass=Meta, k=3):
        y = x * 2

    return A.y * A.k


def test_a_class_made_while_capturing_never_outlives_it():
    check(made_by_a_metaclass, two)
    for _ in range(2):
        assert float(graphlift.compile(made_by_a_metaclass)(torch.ones(1))) == 6


def test_the_dict_of_a_class():
    class Plain:
        scale = 2

    def fresh(x):
        class Inner:
            scale = 3

        return x * Inner.__dict__["scale"]

    compiled = graphlift.compile(lambda x: x * Plain.__dict__["scale"])
    for Plain.scale in (2, 5):
        assert compiled(torch.ones(1)).item() == Plain.scale
    check(fresh, two, graphs=1, breaks=0)


def test_dispatch_modes_see_each_operator():
    seen = []

    class Seeing(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    def plain(x):
        return torch.sin(x) + 1

    def inside(x):
        with Seeing():
            y = plain(x)
        return y * 2

    x, compiled = torch.ones(2), graphlift.compile(inside)
    for _ in range(2):
        del seen[:]
        torch.testing.assert_close(compiled(x), plain(x) * 2)
        assert len(seen) == 2
    compiled = graphlift.compile(plain)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), plain(x))
        del seen[:]
        with Seeing():
            compiled(x)
        assert len(seen) == 2
    assert graphlift.graph_count() == 1


def test_numbers_that_vary_are_matched():
    def program(x, n, s):
        match [x, n, s]:
            case [found, str(), _]:
                return found
            case [found, int(count), float(scale)] if count > 0:
                return found * count * scale, "int"
            case [found, bool() | complex(), _]:
                return found, "other"
        return x, "nothing"

    check(program, lambda k: (torch.ones(2), 3 + k, 0.5 + k), calls=4, graphs=2, breaks=0)
