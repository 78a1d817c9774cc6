"""Breaks inside of inlined calls: one break where it happens, frames and tracebacks as in eager.

The region reaches into the calls: their frames are entered again in the middle, so a caller has no break of its own.
"""

import contextlib
import itertools
import sys
import traceback
import weakref

import pytest
import torch
from judging import regions

import graphlift

SEEN = []


def frames():
    """Names and lines of this file's frames below the judge, innermost first, as two ways of looking tell them."""
    names = [(f.name, f.lineno) for f in traceback.extract_stack()[-2::-1] if f.filename == __file__]
    frame, codes = sys._getframe(1), []
    while frame:
        if frame.f_code.co_filename == __file__:
            codes.append((frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    return [list(itertools.takewhile(lambda one: one[0] != "judge", found)) for found in (names, codes)]


@graphlift.disable
def opaque(x):
    SEEN.append(frames())
    return x


def inner(x):
    y = x + 1
    y = opaque(y)
    return y * 2


def middle(x):
    a = x.sin()
    b = inner(a)
    return b.cos() + a


def three_deep(x):
    p = x * 3
    q = middle(p)
    return q - p


def in_a_with(x):
    with torch.no_grad():
        y = x * 2
        y = middle(y)
    return y + x


def in_a_try(x):
    y = x * 2
    try:
        y = middle(y)
    finally:
        y = y + 1
    return y


def in_an_own_manager(x):
    @contextlib.contextmanager
    def scaled(by):
        yield x * by

    with scaled(3) as y:
        z = middle(y)
    return z + 1


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x)
        y = opaque(y)
        return y.relu()


BLOCK = Block()


def in_a_module(x):
    y = x * 2
    return BLOCK(y) + 1


def many_kinds_of_arguments(x):
    def taken(a, *rest, k=1, **named):
        z = a * k
        z = opaque(z + named["q"])
        named["q"] = 1
        return z + rest[0] + len(named)

    y = x * 2
    return taken(y, x, k=3, **{"q": 5}) + 1


def a_closure_that_counts(x):
    n = 0

    def bump(t):
        nonlocal n
        n += 1
        t = opaque(t * n)
        n += 1
        return t + n

    y = bump(x * 2)
    return y + n


def a_list_that_is_shared(x):
    log = [x * 2]

    def note(items):
        items.append(items[0] + 1)
        opaque(x)
        items.append(items[1] * 2)
        return items

    got = note(log)
    return sum(log) + (1 if got is log else 100)


class Scaler:
    def __init__(self, by):
        self.by = by

    def __call__(self, x):
        y = x * self.by
        self.by += 1
        return opaque(y) + self.by


def an_instance_made_inside(x):
    scaler = Scaler(2)
    y = scaler(x + 1)
    return y * scaler.by


# program: (graphs, breaks)
PROGRAMS = {
    three_deep: (2, 1),
    in_a_with: (2, 1),
    in_a_try: (2, 1),
    in_an_own_manager: (3, 1),
    in_a_module: (2, 1),
    many_kinds_of_arguments: (2, 1),
    a_closure_that_counts: (2, 1),
    a_list_that_is_shared: (2, 1),
    an_instance_made_inside: (2, 1),
}


def judge(program, x):
    SEEN.clear()
    x = x.clone().requires_grad_()
    result = program(x)
    result.sum().backward()
    return result.detach(), x.grad, list(SEEN)


def frames_of_eager(program, calls=2):
    """Calls it compiled and compares all with eager; returns the frames that were seen in one call."""
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    result, gradient, seen = judge(program, x)
    compiled = graphlift.compile(program)
    for _ in range(calls):
        got, got_gradient, got_seen = judge(compiled, x)
        torch.testing.assert_close(got, result)
        torch.testing.assert_close(got_gradient, gradient)
        assert got_seen == seen and seen
    return seen


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_one_break_with_the_frames_of_eager(program):
    frames_of_eager(program, calls=3)
    regions(*PROGRAMS[program])
    assert graphlift.counters()["hits"] > 0


def test_a_loop_of_the_caller_has_a_break_per_round():
    def program(x):
        for i in range(3):
            x = middle(x * 2) + i
        return x

    assert len(frames_of_eager(program)) == 3
    regions(6, 3)  # the second and the third round share theirs: what is added is an input from there on


def test_without_work_in_front_of_the_call_the_break_is_told_once():
    def program(x):
        return middle(x)

    x = torch.ones(2, 4)
    result, _, seen = judge(program, x)
    compiled = graphlift.compile(program)
    got, _, got_seen = judge(compiled, x)
    torch.testing.assert_close(got, result)
    assert got_seen == seen
    regions(2, 1)  # middle down to the break, the rest of inner and of middle


class Refused(Exception):
    pass


def test_an_exception_from_below_is_handled_where_it_is_in_eager():
    def raising(x):
        y = x + 1
        if SEEN is not None:
            opaque(y)
            raise Refused(y.shape)
        return y

    def between(x):
        return raising(x * 2)

    def program(x):
        y = x * 3
        try:
            return between(y)
        except Refused as error:
            lines = [(f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__)]
            SEEN.append(lines)
            return y + error.args[0][0]

    seen = frames_of_eager(program)
    assert [name for name, _ in seen[-1]] == ["program", "between", "raising"]
    assert graphlift.counters()["graphs"] >= 2


def test_errors_that_leave_have_the_traceback_of_eager():
    def failing(x):
        y = x * 2
        opaque(y)
        return y @ y  # shapes that don't fit

    def program(x):
        y = x + 1
        return failing(y) * 2

    def told(f):
        try:
            f(torch.ones(2, 4))
        except RuntimeError as error:
            return [
                (f.name, f.lineno) for f in traceback.extract_tb(error.__traceback__) if f.filename == __file__
            ], str(error)

    compiled = graphlift.compile(program)
    for _ in range(2):
        assert told(compiled) == told(program)
    assert graphlift.counters()["graphs"] >= 1


def test_what_calls_in_c_enter_ends_the_region_before_the_call():
    def key(t):
        return opaque(t).shape[0]

    def program(x):
        y = x * 2
        a, b = sorted([y, y[:1]], key=key)
        return a.sum() + b

    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    expected = program(x)
    compiled = graphlift.compile(program)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), expected)
    regions(2, 3)  # the call of sorted, and the function for each of two shapes


def test_a_generator_that_breaks():
    def values(x):
        for i in range(2):
            yield middle(x + i)

    def program(x):
        total = x * 2
        for value in values(x):
            total = total + value
        return total

    frames_of_eager(program)
    assert graphlift.counters()["graphs"] >= 3


def test_other_callees_are_captured_anew():
    def twice(x):
        return opaque(x * 2) + 1

    def thrice(x):
        return opaque(x * 3) - 1

    def program(x, callee):
        y = x + 1
        return callee(y) * 2

    x = torch.ones(2, 4)
    compiled = graphlift.compile(program)
    for callee in (twice, thrice, twice, thrice):
        torch.testing.assert_close(compiled(x, callee), program(x, callee))
    assert graphlift.counters()["graph_breaks"] == 2


def test_the_log_names_the_place_of_the_break():
    explained = graphlift.explain(three_deep)(torch.ones(2, 4))
    assert explained.graph_break_count == 1
    assert "in inner" in explained.break_reasons[0].stack[-1]


class Raising:
    def __call__(self, x):
        raise KeyError("there")


class Handling:
    def __call__(self, x):
        try:
            Raising.__call__(self, x)
        except KeyError:
            return x * 3


def test_exceptions_of_callables_that_inherit_their_call():
    """Where an exception is raised is noted by a look at the class that is called, which must not touch the exception."""

    def program(x):
        class Other(Raising):
            pass

        class Another(Handling):
            pass

        try:
            Other()(x)
        except KeyError as error:
            return Another()(x) + len(error.args)

    x = torch.ones(3)
    for _ in range(5):
        graphlift.reset()
        sys._clear_type_cache()
        torch.testing.assert_close(graphlift.compile(program)(x), program(x))
        regions(1, 0)


def test_memory_of_an_inner_frame_is_given_back():
    """The frames alone hold what the region made."""
    references = []

    @graphlift.disable
    def look():
        references.append(references[0]() is None)

    @graphlift.disable
    def watch(x):
        references[:] = [weakref.ref(x)]

    def lets_go(x):
        y = x * 2
        watch(y)
        z = y + 1
        y = None  # noqa: F841
        look()
        return z

    def program(x):
        return lets_go(x + 1) * 3

    compiled = graphlift.compile(program)
    for f in (program, compiled, compiled):
        assert f(torch.ones(2)).tolist() == [15.0, 15.0] and references[1]
    assert graphlift.counters()["graphs"] >= 2
