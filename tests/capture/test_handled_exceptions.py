"""What sys.exc_info() tells of where regions begin or end inside of `except` clauses: as in eager, and nothing behind."""

import sys

import pytest
import torch

import graphlift


def told():
    return repr(sys.exc_info()[1])


def break_in_a_handler(x):
    try:
        raise ValueError("a")
    except ValueError:
        y = x + 1
        graphlift.graph_break()
        y = y * 2
        inside = told()
    return y, inside, told()


def returns_from_a_handler(x):
    try:
        raise ValueError("a")
    except ValueError as error:
        graphlift.graph_break()
        return x + 1, str(error), told()


def raises_again(x):
    y = x * 2
    try:
        try:
            raise KeyError("a")
        except KeyError:
            graphlift.graph_break()
            y = y + 1
            raise
    except KeyError as error:
        y = y + 2
        inside = told(), repr(error.__context__)
    return y, inside, told()


def nested(x):
    seen = []
    try:
        raise ValueError("outer")
    except ValueError:
        try:
            raise KeyError("inner")
        except KeyError:
            graphlift.graph_break()
            x = x + 1
            seen.append(told())
        x = x * 2
        seen.append(told())
        graphlift.graph_break()
        x = x + 3
        seen.append(told())
    return x, seen, told()


def in_a_loop(x):
    seen = []
    for i in range(3):
        try:
            if i:
                raise ValueError(i)
            x = x + 1
        except ValueError:
            graphlift.graph_break()
            x = x * 2
            seen.append(told())
            continue
        seen.append(told())
    return x, seen, told()


def in_finally(x):
    try:
        try:
            raise ValueError("a")
        finally:
            x = x + 1
            graphlift.graph_break()
            x = x * 2
    except ValueError:
        x = x + 5
    return x, told()


def inside_of_a_call(x):
    def inner(y):
        try:
            raise ValueError("a")
        except ValueError:
            graphlift.graph_break()
            return y + 1

    z = inner(x) * 2
    return z, told()


PROGRAMS = [
    break_in_a_handler,
    returns_from_a_handler,
    raises_again,
    nested,
    in_a_loop,
    in_finally,
    inside_of_a_call,
]


@pytest.mark.parametrize("handling", [False, True], ids=["plain", "while another is handled"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_what_is_handled(program, handling):
    def outcome(function):
        if not handling:
            result = function(torch.ones(2))
            return result, told()
        try:
            raise LookupError("around")
        except LookupError:
            result = function(torch.ones(2))
            return result, told()

    expected = outcome(program)
    before = graphlift.counters()
    compiled = graphlift.compile(program)
    for _ in range(3):
        got = outcome(compiled)
        assert torch.equal(got[0][0], expected[0][0])
        assert (got[0][1:], got[1]) == (expected[0][1:], expected[1])
    assert told() == "None"
    after = graphlift.counters()
    assert after["graphs"] > before["graphs"] and after["graph_breaks"] > before["graph_breaks"]
    assert after["internal_errors"] == before["internal_errors"]
