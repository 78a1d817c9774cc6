"""Parts of functions that programs replace between calls, once guards are checked by what they remember."""

import pytest
import torch

import graphlift

HITS = 6


def doubled(x, by=None, *, more=None):
    return x * 2 if by is None and more is None else x * (by or 1) + (more or 0)


def tripled(x, by=None, *, more=None):
    return x * 3


def program(x):
    return doubled(x) + 1


CHANGES = {
    "__code__": tripled.__code__,
    "__defaults__": (5,),
    "__kwdefaults__": {"more": 7},
}


@pytest.mark.parametrize("part", list(CHANGES))
def test_a_part_that_is_replaced_is_noticed(part):
    before, x = getattr(doubled, part), torch.arange(4.0)
    compiled = graphlift.compile(program, fullgraph=True)
    try:
        for value in (before, CHANGES[part], before, CHANGES[part]):
            setattr(doubled, part, value)
            for _ in range(HITS):
                assert torch.equal(compiled(x), program(x))
    finally:
        setattr(doubled, part, before)
    assert graphlift.counters()["hits"] > 0


@pytest.mark.parametrize("part, value", [("__defaults__", (2.0,)), ("__kwdefaults__", {"by": 2.0})])
def test_a_part_that_is_first_there_is_noticed(part, value):
    def scale(x, *given, **more):
        return x * 2

    def with_default(x, by=1.0):
        return x * by

    def with_keyword(x, *, by=1.0):
        return x * by

    other = with_default if part == "__defaults__" else with_keyword
    setattr(other, part, None)

    def asks(x):
        return scale(x) if getattr(other, part) is None else other(x)

    x, compiled = torch.arange(4.0), graphlift.compile(asks, fullgraph=True)
    for now in (None, value, None):
        setattr(other, part, now)
        for _ in range(HITS):
            assert torch.equal(compiled(x), asks(x))
