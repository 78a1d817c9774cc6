"""Sets are iterated in eager's order: those from outside, and those that a region changed or made and handed out."""

import random

import pytest
import torch
from judging import regions

import graphlift


class Thing:
    pass


def numbers(seed, count):
    return random.Random(seed).sample(range(-50, 400), count)


def set_of(items):
    made = set()
    for item in items:
        made.add(item)
    return made


def after(taken, items):
    made = set_of([*items, *taken])
    made.difference_update(taken)
    return made


def digits(keys):
    total = 0
    for key in keys:
        total = (total * 7 + key) % 1000003
    return total


READS = {
    "for": digits,
    "list": lambda s: list(s)[:2],
    "star": lambda s: [*s],
    "unpacking": lambda s: (lambda first, *rest: (first, rest))(*s),
    "next": lambda s: next(iter(s)),
    "text": lambda s: f"{s}",
    "tuple": lambda s: tuple(s),
    "enumerate": lambda s: list(enumerate(s)),
    "join": lambda s: ",".join([str(i) for i in s]),
    "keys": lambda s: list(dict.fromkeys(s)),
    "union": lambda s: list(s | {1000}),
    "copy": lambda s: list(s.copy()),
    "frozenset": lambda s: list(frozenset(s)),
}
TWO = [{3, 11}, set_of([11, 3])]


@pytest.mark.parametrize("read", READS)
def test_equal_sets_of_another_order_are_told_apart(read):
    assert TWO[0] == TWO[1] and list(TWO[0]) != list(TWO[1])
    compiled = graphlift.compile(lambda x, s: (x * 2, READS[read](s)))
    for given in TWO * 2:
        value, got = compiled(torch.ones(1), given)
        assert got == READS[read](given) and value.item() == 2
    regions(2, 0)


def test_what_has_no_order_is_one_region():
    compiled = graphlift.compile(lambda x, s: (x * 2, sorted(s), max(s), len(s), 3 in s, s == {3, 11}))
    for given in TWO * 2:
        assert compiled(torch.ones(1), given)[1:] == ([3, 11], 11, 2, True, True)
    regions(1, 0)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 12, 19, 30, 80])
@pytest.mark.parametrize("frozen", [False, True])
def test_sets_that_are_handed_out(count, frozen):
    for seed in range(4):
        items = numbers(seed, count)

        def program(x):
            made = set()
            for item in items:
                made.add(item)
            return x * 2, frozenset(made) if frozen else made  # noqa: B023

        graphlift.reset()
        compiled = graphlift.compile(program)
        for _ in range(2):
            assert list(compiled(torch.ones(1))[1]) == list(program(torch.ones(1))[1])
        assert graphlift.graph_count() >= 1
        if not frozen:
            regions(1, 0)


def test_a_set_that_lives_over_a_break():
    def program(x):
        made = set()
        made.add(3), made.add(11)
        y = x + 1
        graphlift.graph_break()
        made.add(19)
        return y * 2, list(made)

    compiled = graphlift.compile(program)
    for _ in range(2):
        assert compiled(torch.ones(1))[1] == program(torch.ones(1))[1]
    assert graphlift.graph_count() == 2


@pytest.mark.parametrize("count", [0, 1, 4, 5, 12, 30])
def test_sets_from_outside_that_are_changed(count):
    def program(x, s, more):
        for item in more:
            s.add(item)
        return x * 2

    compiled = graphlift.compile(program, options={"recompile_limit": 100})
    for seed in range(6):
        items = numbers(seed, count + 6)
        mine, eager = set_of(items[:count]), set_of(items[:count])
        for start in range(0, 6, 2):  # again and again: a set that a region changed is as good as any
            more = items[count + start : count + start + 2]
            compiled(torch.ones(1), mine, more), program(torch.ones(1), eager, more)
            assert list(mine) == list(eager)
    assert graphlift.graph_count() >= 1 and graphlift.counters()["graph_breaks"] == 0


@pytest.mark.parametrize("change", ["discard", "remove", "pop", "clear", "update", "difference_update"])
def test_other_changes(change):
    argument = {"update": ({40, 3},), "difference_update": ({3},), "pop": (), "clear": ()}.get(change, (11,))

    def program(x, s):
        y = x * 2
        getattr(s, change)(*argument)
        return y + len(s)

    compiled = graphlift.compile(program)
    for items in ([3, 11], [11, 3], [11, 3, 19, 40, 27, 5]):
        mine, eager = set_of(items), set_of(items)
        assert torch.equal(compiled(torch.ones(1), mine), program(torch.ones(1), eager))
        assert list(mine) == list(eager)
    assert graphlift.graph_count() >= 1


def test_sets_that_shrank():
    compiled = graphlift.compile(lambda x, s: (x * 2, list(s)))
    for given in (after(range(400, 460), [3, 11]), {3, 11}, after([4], [11, 3]), set_of([11, 3])):
        for _ in range(2):
            assert compiled(torch.ones(1), given)[1] == list(given)
    assert graphlift.graph_count() >= 1


@pytest.mark.parametrize("make", [lambda i: torch.tensor(float(i)), lambda i: Thing()])
def test_a_set_of_objects_from_outside_over_a_break(make):
    """Which one of two came first decides where they are in each other's way: the set is made for real."""

    def program(x, *things):
        y = x * 2
        made = set(things[::-1])
        graphlift.graph_break()
        return y + 1, list(made)

    compiled = graphlift.compile(program)
    kept = [[make(i) for i in range(4)] for _ in range(30)]
    for things in kept:
        got, expected = compiled(torch.ones(1), *things)[1], program(torch.ones(1), *things)[1]
        assert [id(thing) for thing in got] == [id(thing) for thing in expected]
    assert graphlift.graph_count() >= 1
