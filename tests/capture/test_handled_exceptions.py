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


# What a raise links to is handled outside of the region, and is another exception in each call.


def keeps_the_error(x):
    try:
        raise ValueError("a")
    except ValueError as error:
        kept = error
        y = x * 2
    return y, kept


def asks_for_the_context(x):
    try:
        raise ValueError("a")
    except ValueError as error:
        alone = error.__context__ is None
    return (x + 1 if alone else x - 1), None


def keeps_one_raised_in_a_handler(x):
    try:
        raise ValueError("a")
    except ValueError:
        y = x + 1
        try:
            raise TypeError("b")
        except TypeError as error:
            kept = error
    return y, kept


def ends_in_a_handler(x):
    try:
        raise ValueError("a")
    except ValueError:
        y = x + 1
        graphlift.graph_break()
    return y, None


def raises_what_is_handled(x):
    try:
        raise
    except RuntimeError:
        y = x + 1
    except LookupError:
        y = x + 2
    return y, None


def raises_one_of_outside(x):
    error = ERRORS[0]
    try:
        raise error
    except ValueError:
        y = x + 1
    return y, error


ERRORS = [ValueError("of outside")]
LINKING = [
    keeps_the_error,
    asks_for_the_context,
    keeps_one_raised_in_a_handler,
    ends_in_a_handler,
    raises_what_is_handled,
    raises_one_of_outside,
]


def chain(error):
    links = []
    while error is not None:
        links.append(repr(error))
        error = error.__context__
    return links


@pytest.mark.parametrize("order", [(0, 1, 0, 2), (1, 0, 2, 1)], ids=["plain first", "handled first"])
@pytest.mark.parametrize("program", LINKING, ids=lambda f: f.__name__)
def test_what_a_raise_links_to(program, order):
    def outcome(function, around):
        ERRORS[0] = ValueError("of outside")
        if not around:
            y, kept = function(torch.ones(2))
            return y.tolist(), chain(kept), told()
        try:
            raise LookupError(around)
        except LookupError as error:
            y, kept = function(torch.ones(2))
            links = chain(kept)
            return y.tolist(), links, sys.exc_info()[1] is error

    expected = [outcome(program, around) for around in order]
    graphs = graphlift.graph_count()
    compiled = graphlift.compile(program)
    assert [outcome(compiled, around) for around in order] == expected
    assert told() == "None"
    assert graphlift.graph_count() > graphs


def raises_again_what_came(x, error):
    y = x * 2
    try:
        try:
            raise error
        except Exception:
            graphlift.graph_break()
            y = y + 1
            raise
    except KeyError:
        return y + 2
    except ValueError:
        return y + 3


def test_another_is_raised_again():
    compiled = graphlift.compile(raises_again_what_came)
    graphs = graphlift.graph_count()
    for kind in (KeyError, ValueError, KeyError):
        expected = raises_again_what_came(torch.ones(2), kind("a"))
        assert torch.equal(compiled(torch.ones(2), kind("a")), expected)
    assert graphlift.graph_count() > graphs


def raises_in_a_handler(x, error):
    try:
        raise KeyError("inner")
    except KeyError:
        try:
            raise error
        except ValueError:
            return x + 1


def raises_with_a_cause(x, error):
    try:
        raise error from KeyError("inner")
    except ValueError:
        return x + 1


@pytest.mark.parametrize("program", [raises_in_a_handler, raises_with_a_cause], ids=lambda f: f.__name__)
def test_a_raise_writes_into_what_came(program):
    compiled = graphlift.compile(program)
    before = graphlift.counters()
    for _ in range(2):
        expected, got = ValueError("a"), ValueError("a")
        assert torch.equal(compiled(torch.ones(2), got), program(torch.ones(2), expected))
        assert repr((got.__context__, got.__cause__)) == repr((expected.__context__, expected.__cause__))
    after = graphlift.counters()
    assert after["graphs"] > before["graphs"] and after["graph_breaks"] > before["graph_breaks"]
