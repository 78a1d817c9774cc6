"""What a program makes and arranges inside of itself: functions by decorators, parameters, modules, generators, contexts."""

import contextvars
import functools
import itertools
import weakref

import numpy
import pytest
import torch
from judging import check, same

import graphlift

VARIABLE = contextvars.ContextVar("VARIABLE", default=1)


def doubled(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) * 2

    wrapper.calls = 0
    return wrapper


@doubled
def from_outside(x, *, k=1):
    """Text."""
    return x + k


def wraps(x):
    @doubled
    def inside(x: torch.Tensor):
        return x * 3

    told = [inside.__name__, inside.__doc__, list(inside.__annotations__), inside.__wrapped__(2), from_outside.__name__]
    return inside(x), from_outside(x, k=4), from_outside.__wrapped__(x), told, from_outside.__doc__


@functools.singledispatch
def kind(value):
    return value + 1


@kind.register
def _(value: int):
    return value * 2


@kind.register(torch.Tensor)
def _(value):
    return value * 3


class Kinds:
    @functools.singledispatchmethod
    def of(self, value):
        return value

    @of.register
    def _(self, value: torch.Tensor):
        return value * 2

    times = functools.partialmethod(lambda self, a, b: a * b, b=3)


def single_dispatch(x):
    kinds = Kinds()
    return kind(x), kind(2), kind(1.5), kinds.of(x), kinds.of("a"), kinds.times(x)


def decorators_with_arguments(x):
    def repeated(times):
        def decorate(function):
            @functools.wraps(function)
            def wrapper(x):
                return functools.reduce(lambda y, _: function(y), range(times), x)

            return wrapper

        return decorate

    @repeated(3)
    def step(x):
        return x * 2 + 1

    return step(x), step.__name__


def methods_as_values(x):
    class Holder:
        def __init__(self, v):
            self.v = v

        def method(self, x):
            return x * self.v

        @staticmethod
        def free(x):
            return x - 1

        @classmethod
        def made(cls, v):
            return cls(v + 1)

    bound = Holder(3).method
    return bound(x), Holder.method(Holder(4), x), Holder.free(x), Holder.made(5).v, [f(x) for f in (bound, Holder.free)]


def lazily(x):
    steps = itertools.count(1)
    taken = list(itertools.takewhile(lambda k: k < 4, steps))
    pairs = itertools.chain.from_iterable([[x, x + 1], (x * 2 for _ in range(2))])
    return sum(pairs), taken, next(steps), sum(x * k for k in taken), list(itertools.zip_longest([1, 2], [3]))


CALLS = []


@functools.lru_cache
def counted(n):
    CALLS.append(n)
    return n * 2


def test_a_cache_without_the_answer_is_filled_by_what_acts():
    compiled = graphlift.compile(lambda x: x * counted(5) + counted(5))
    for _ in range(3):
        assert compiled(torch.ones(2)).tolist() == [20.0, 20.0]
    assert CALLS == [5] and counted.cache_info().currsize == 1
    assert graphlift.graph_count() >= 1


# Everything in one graph.
CAPTURED = [wraps, single_dispatch, decorators_with_arguments, methods_as_values, lazily]


def inputs(k):
    return ((torch.linspace(-1, 1, 6).reshape(2, 3) + k).requires_grad_(),)


@pytest.mark.parametrize("program", CAPTURED, ids=lambda f: f.__name__)
def test_one_graph(program):
    program(*inputs(0))  # caches of the library are warm
    check(program, inputs, graphs=1, breaks=0)


def a_generator(x):
    y = x * 2
    generator = torch.Generator().manual_seed(3)
    return y + torch.rand(2, 3, generator=generator), torch.randn(2, generator=generator), generator.initial_seed()


def states_of_generators(x):
    y = x * 2
    generator = torch.Generator()
    generator.manual_seed(3)
    state = generator.get_state()
    a = torch.rand(2, generator=generator)
    generator.set_state(state)
    return y + 1, a, torch.rand(2, generator=generator)


def the_state_of_torch(x):
    y = x * 2
    state = torch.get_rng_state()
    a = torch.rand(2)
    torch.set_rng_state(state)
    return y + 1, a, torch.rand(2)


def forked(x):
    y = x * 2
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        a = torch.rand(2)
    return y + 1, a, torch.rand(2)


@pytest.mark.parametrize(
    "program", [a_generator, states_of_generators, the_state_of_torch, forked], ids=lambda f: f.__name__
)
def test_states_of_generators_in_one_graph(program):
    check(program, inputs, graphs=1, breaks=0)


def a_copied_context(x):
    token = VARIABLE.set(3)
    y = x * 2
    context = contextvars.copy_context()
    VARIABLE.reset(token)
    return y * context[VARIABLE], VARIABLE in context, VARIABLE.get()


def weak_references(x):
    class Thing:
        pass

    thing = Thing()
    thing.value = x * 2
    reference, finalized = weakref.ref(thing), []
    weakref.finalize(thing, finalized.append, 1)
    y = reference().value + 1
    del thing
    return y, reference() is None, finalized


# Programs with breaks, as torch.compile's: what was made is eager's, and code around it is compiled.
BROKEN = [
    a_copied_context,
    weak_references,
]


@pytest.mark.parametrize("program", BROKEN, ids=lambda f: f.__name__)
def test_right_with_breaks(program):
    assert check(program, inputs)["graph_breaks"] >= 1


def arithmetic_on_arrays(a, x):
    y = x * 2
    return torch.from_numpy(a * 2 + 1) * 3 + y, torch.as_tensor(a) + y, torch.tensor(a) * 2


def an_array_out(a, x):
    y = x * 2
    return y.numpy().tolist(), (y + 1).detach().cpu().numpy().sum().item()


@pytest.mark.parametrize("program", [arithmetic_on_arrays, an_array_out], ids=lambda f: f.__name__)
def test_arrays(program):
    compiled = graphlift.compile(program)
    for k in range(4):
        array, x = numpy.arange(6 + 2 * (k % 2), dtype=numpy.float32).reshape(2, -1) + k, torch.ones(2, 3 + k % 2)
        same(compiled(array, x), program(array, x))
    counts = graphlift.counters()
    assert counts["graphs"] >= 1 and counts["given_up"] == 0, counts


def batches(**how):
    data = torch.utils.data.TensorDataset(torch.arange(24.0).reshape(8, 3), torch.arange(8.0))
    return torch.utils.data.DataLoader(data, batch_size=2, **how)


def a_loop(loader):
    total = torch.zeros(3)
    for x, y in loader:
        total = total + (x * y[:, None]).sum(0)
    return total


def a_counted_loop(loader):
    totals = []
    for i, (x, y) in enumerate(loader):
        if i == 3:
            break
        totals.append((x * 2).sum() + y.sum())
    return torch.stack(totals)


@pytest.mark.parametrize("program", [a_loop, a_counted_loop], ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "how", [{}, {"shuffle": True}, {"drop_last": True, "collate_fn": torch.utils.data.default_collate}]
)
def test_a_loop_over_a_loader_has_a_region_for_its_body(program, how):
    compiled = graphlift.compile(program)
    for k in range(3):
        results = []
        for f in (program, compiled):
            torch.manual_seed(k)
            results.append(f(batches(**how)))
        torch.testing.assert_close(*results)
    counts = graphlift.counters()
    assert counts["graphs"] <= 4 and counts["hits"] >= 8, counts
