"""Context variables that are set, weak references that are made or asked, and caches, inside of a region."""

import contextvars
import functools
import gc
import weakref

import pytest
import torch
from judging import check, regions

import graphlift

VARIABLE = contextvars.ContextVar("VARIABLE", default=1)
OTHER = contextvars.ContextVar("OTHER")


class Thing:
    def __init__(self, v):
        self.v = v

    @functools.cached_property
    def twice(self):
        return self.v * 2


THING = Thing(3)
REFERENCE = weakref.ref(THING)
BY_NAME = weakref.WeakValueDictionary(thing=THING)
BY_THING = weakref.WeakKeyDictionary({THING: 5})


def set_and_reset(x):
    token = VARIABLE.set(5)
    y = x * VARIABLE.get()
    VARIABLE.reset(token)
    return y + VARIABLE.get()


def set_twice(x):
    first = VARIABLE.set(x * 2)
    second = VARIABLE.set(VARIABLE.get() + 1)
    y = VARIABLE.get() * 3
    VARIABLE.reset(second)
    z = VARIABLE.get()
    VARIABLE.reset(first)
    return y - z, VARIABLE.get()


def left_set(x):
    OTHER.set([x + 1, 2])
    return OTHER.get()[0] * 2


def in_a_finally(x):
    token = OTHER.set("inside")
    try:
        return x * len(OTHER.get())
    finally:
        OTHER.reset(token)


def read(x):
    return x * VARIABLE.get() + OTHER.get(7)


def asked(x):
    return x * REFERENCE().v


def made_of_an_object_from_outside(x):
    return x * weakref.ref(THING)().v


def made_of_a_new_object(x):
    thing = Thing(4)
    reference = weakref.ref(thing)
    y = x * reference().v
    del thing
    return y, reference() is None


def values_by_name(x):
    return x * BY_NAME["thing"].v, "other" in BY_NAME


def values_by_object(x):
    return x * BY_THING[THING]


def a_cache_made_inside(x):
    calls = []

    @functools.lru_cache(maxsize=2)
    def square(n):
        calls.append(n)
        return n * n

    return x * (square(2) + square(3) + square(2)), calls


@functools.singledispatch
def kind(value):
    return 1


@kind.register
def _(value: int):
    return value * 10


@kind.register
def _(value: torch.Tensor):
    return value * 3


def dispatched(x):
    return kind(x) + kind(2) + kind("text")


def computed_once(x):
    thing = Thing(2)
    return x * thing.twice + thing.twice, "twice" in thing.__dict__


ONE_GRAPH = [
    set_and_reset,
    set_twice,
    left_set,
    in_a_finally,
    read,
    asked,
    made_of_an_object_from_outside,
    made_of_a_new_object,
    values_by_name,
    values_by_object,
    a_cache_made_inside,
    dispatched,
    computed_once,
]


def told(program):
    """The result of a call in a context of its own, and what the variables are behind it."""
    context = contextvars.copy_context()
    result = context.run(program, torch.arange(3.0))
    after = [context.get(variable) for variable in (VARIABLE, OTHER)]
    return result, [value[0] if isinstance(value, list) else value for value in after]


def same(got, want):
    if isinstance(want, torch.Tensor):
        return torch.equal(got, want)
    if isinstance(want, tuple | list):
        return type(got) is type(want) and len(got) == len(want) and all(map(same, got, want))
    return got == want


@pytest.mark.parametrize("program", ONE_GRAPH, ids=lambda f: f.__name__)
def test_one_graph(program):
    want = told(program)
    compiled = graphlift.compile(program)
    for _ in range(3):
        assert same(told(compiled), want)
    regions(1, 0)


def test_a_default_that_is_given_comes_before_the_variables_own():
    compiled = graphlift.compile(lambda x: x * 2 + VARIABLE.get(7))

    def use(value):
        VARIABLE.set(value)
        return compiled(torch.zeros(1)).item()

    for _ in range(2):
        assert compiled(torch.zeros(1)).item() == 7
        assert contextvars.copy_context().run(use, 1) == 1
        assert contextvars.copy_context().run(use, 2) == 2
    assert graphlift.counters()["graphs"] >= 1


def test_a_token_that_is_handed_out_resets():
    compiled = graphlift.compile(lambda x: (x * 2, VARIABLE.set(8)))

    def use():
        _, token = compiled(torch.ones(3))
        inside = VARIABLE.get()
        VARIABLE.reset(token)
        return inside, VARIABLE.get()

    for _ in range(3):
        assert contextvars.copy_context().run(use) == (8, 1)
    regions(1, 0)


def test_a_token_from_outside_resets():
    def program(x, token):
        y = x * VARIABLE.get()
        VARIABLE.reset(token)
        return y + 1

    compiled = graphlift.compile(program)

    def use(f):
        token = VARIABLE.set(4)
        return f(torch.ones(3), token), VARIABLE.get()

    for _ in range(3):
        assert same(contextvars.copy_context().run(use, compiled), contextvars.copy_context().run(use, program))
    regions(1, 0)


def test_a_given_up_attempt_sets_nothing():
    @graphlift.disable
    def opaque():
        return VARIABLE.get()

    def program(x):
        VARIABLE.set(6)
        y = x * 2
        return y + opaque(), VARIABLE.get()

    compiled = graphlift.compile(program)
    for _ in range(3):
        assert same(told(compiled), told(program))
    assert VARIABLE.get() == 1
    regions(2, 1)


class Holder:
    pass


def test_what_held_the_object_was_changed():
    def program(x, holder):
        reference = weakref.ref(holder.thing)
        holder.thing = None
        return x + 1, reference() is None

    compiled = graphlift.compile(program)
    for _ in range(2):
        results = []
        for f in (program, compiled):
            holder = Holder()
            holder.thing = Thing(1)
            results.append(f(torch.ones(3), holder))
        assert same(results[1], results[0]) and results[0][1]


def test_an_object_that_died_between_calls():
    thing = Thing(2)
    reference = weakref.ref(thing)

    def program(x):
        found = reference()
        return x * (found.v if found else 9)

    compiled = graphlift.compile(program)
    assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 2.0))
    del thing
    gc.collect()
    assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 9.0))
    regions(2, 0)


def test_what_a_token_says_of_the_value_before():
    def program(x):
        token = VARIABLE.set(5)
        before = token.old_value
        VARIABLE.reset(token)
        return x * VARIABLE.get() + (100 if before is contextvars.Token.MISSING else before)

    def use(f, value):
        if value:
            VARIABLE.set(value)
        return f(torch.ones(3))

    compiled = graphlift.compile(program)
    for value in (2, 7, None, 2):
        results = [contextvars.copy_context().run(use, f, value) for f in (compiled, program)]
        assert torch.equal(*results)
    assert graphlift.counters()["graphs"] >= 1


KEPT = Holder()


def drops_an_attribute(x, reference):
    KEPT.thing = None
    return x + 1, reference() is None


def drops_what_a_cell_holds(x, reference):
    def drop():
        nonlocal thing
        thing = None

    thing, KEPT.thing = KEPT.thing, None
    y = opaque(x * 2)
    drop()
    return y + 1, reference() is None


def drops_a_variable(x, reference):
    thing, KEPT.thing = KEPT.thing, None
    y = opaque(x * 2)
    thing = None
    return y + 1, reference() is None, thing


def drops_a_variable_that_a_reference_led_to(x, reference):
    thing, KEPT.thing = KEPT.thing, None
    y = opaque(x * 2) * reference().v
    del thing
    return y + 1, reference() is None


def drops_what_held_it(x, reference):
    holder = Holder()
    holder.thing, KEPT.thing = KEPT.thing, None
    y = opaque(x * 2)
    y = y + holder.thing.v
    holder = None  # noqa: F841
    return y + 1, reference() is None


def drops_what_held_it_unread(x, reference):
    holder = Holder()
    holder.thing, holder.k, KEPT.thing = KEPT.thing, 2, None
    y = opaque(x * 2)
    y = y + holder.k
    holder = None  # noqa: F841
    return y + 1, reference() is None


def drops_a_new_function(x, reference):
    def function():
        return 1

    own = weakref.ref(function)
    y = x + own()()
    del function
    return y, own() is None


@graphlift.disable
def opaque(x):
    return x


DROPS = [
    drops_an_attribute,
    drops_what_a_cell_holds,
    drops_a_variable,
    drops_a_variable_that_a_reference_led_to,
    drops_what_held_it,
    drops_what_held_it_unread,
    drops_a_new_function,
]


@pytest.mark.parametrize("program", DROPS, ids=lambda f: f.__name__)
def test_the_last_reference_is_dropped(program):
    def dropped(f):
        KEPT.thing = Thing(2)
        return f(torch.ones(3), weakref.ref(KEPT.thing))

    compiled = graphlift.compile(program)
    for _ in range(3):
        want = dropped(program)
        assert same(dropped(compiled), want) and want[1] is True
    assert graphlift.counters()["graphs"] >= 1


def test_variables_of_loops_hold_nothing_alone():
    """What else holds an object is on the path to it: a reference behind the loop is followed."""

    def program(x, things, reference):
        for thing in things:  # noqa: B007
            x = x * thing.v
        thing = None  # noqa: F841
        return x + reference().v

    things = [Thing(2), Thing(3)]
    check(program, lambda: (torch.ones(3), things, weakref.ref(things[1])), graphs=1, breaks=0)


def run_in_a_context(x):
    context = contextvars.copy_context()

    def inside():
        VARIABLE.set(5)
        return x * VARIABLE.get()

    return context.run(inside) + x * 2, VARIABLE.get(), context[VARIABLE]


def run_twice_in_a_context(x):
    token = VARIABLE.set(2)
    context = contextvars.copy_context()
    VARIABLE.reset(token)

    def counts(by, *, scale=1):
        VARIABLE.set(VARIABLE.get() + by)
        return x * VARIABLE.get() * scale

    return context.run(counts, 3), context.run(counts, 4, scale=2), VARIABLE.get()


def set_in_the_caller_and_in_contexts(x):
    VARIABLE.set(7)
    first, second = contextvars.copy_context(), contextvars.copy_context()

    def nested(n):
        token = VARIABLE.set(n)
        inner = second.run(nested, n + 1) if n < 10 else 0
        VARIABLE.reset(token)
        return inner + VARIABLE.get()

    total = first.run(nested, 9)
    VARIABLE.set(8)
    return x * total, VARIABLE.get(), first.run(VARIABLE.get)


def what_it_runs_raises(x):
    context = contextvars.copy_context()

    def raises():
        VARIABLE.set(9)
        raise ValueError(VARIABLE.get())

    try:
        context.run(raises)
    except ValueError as error:
        x = x * error.args[0]
    return x, VARIABLE.get()


@pytest.mark.parametrize(
    "program",
    [run_in_a_context, run_twice_in_a_context, set_in_the_caller_and_in_contexts, what_it_runs_raises],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("before", [None, 30])
def test_what_runs_in_a_context_of_the_programs_own(program, before):
    def use():
        if before is not None:
            VARIABLE.set(before)
        check(program, lambda: (torch.linspace(-1, 1, 3),), graphs=1, breaks=0)

    contextvars.copy_context().run(use)


def test_what_is_read_in_a_context_is_guarded():
    def program(x):
        return contextvars.copy_context().run(lambda: x * VARIABLE.get())

    compiled = graphlift.compile(program, fullgraph=True)

    def use(value):
        VARIABLE.set(value)
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), float(value)))

    for value in (2, 3, 2, 3):
        contextvars.copy_context().run(use, value)


def given_away(x):
    context = contextvars.copy_context()
    y = context.run(lambda: VARIABLE.set(4) and x * 2)
    return y, context


def looked_into(x):
    context = contextvars.copy_context()
    return x * 2, VARIABLE in context, len(context), bool(context)


def of_the_caller(x, context=contextvars.copy_context()):
    return context.run(lambda: x * VARIABLE.get())


@pytest.mark.parametrize("program", [given_away, looked_into, of_the_caller], ids=lambda f: f.__name__)
def test_contexts_that_are_not_known(program):
    def use(value):
        if value:
            VARIABLE.set(value)
        results = []
        for f in (program, compiled):
            result = f(torch.ones(2))
            result = list(result) if isinstance(result, tuple) else [result]
            if isinstance(result[-1], contextvars.Context):
                result[-1] = result[-1][VARIABLE]
            results.append([r.tolist() if isinstance(r, torch.Tensor) else r for r in result])
        assert results[0] == results[1]

    compiled = graphlift.compile(program)
    for value in (None, 3, None, 3):
        contextvars.Context().run(use, value)
    assert graphlift.counters()["graph_breaks"] >= 1
