"""Behind a break inside of inlined calls one region goes through the inner frames' returns, on in their callers."""

import gc
import weakref

import pytest
import torch
from judging import regions

import graphlift

SEEN = []


@graphlift.disable
def opaque(x):
    SEEN.append(x.detach().clone())
    return x


def inner(x, by=2):
    y = opaque(x + 1)
    return y * by


def judge(program, *args):
    """Result, gradient, and what was seen, of the program and of it compiled, three calls each."""
    found = []
    for f in (program, graphlift.compile(program)):
        for _ in range(3):
            SEEN.clear()
            x = torch.linspace(-1, 1, 8).reshape(2, 4).requires_grad_()
            result = f(x, *args)
            result.sum().backward()
            found.append((result.detach(), x.grad, list(SEEN)))
    for got in found[1:]:
        torch.testing.assert_close(got, found[0])


def two_breaks(x):
    y = inner(x * 3)
    z = y.sin()
    w = opaque(z)
    return w + y


def a_break_in_the_next_call(x):
    y = inner(x * 3)
    return inner(y.sin(), by=5).cos()


def many_levels(x):
    def one(x):
        return inner(x.sin()) + 1

    def two(x, *, scale):
        return one(x * scale) * 2

    def three(*args, **kwargs):
        return two(*args, **kwargs).cos()

    return three(x + 1, scale=3) - x


def returns_without_work(x):
    def passes_on(x):
        return inner(x.exp())

    y = passes_on(x * 2)
    return y.tanh()


class Holder:
    def __init__(self):
        self.seen = 0

    def count(self, x):
        y = inner(x * 2)
        self.seen += 1
        return y * self.seen


def writes_to_objects(x):
    holder = Holder()
    holder.twice = holder.count(x)
    return holder.twice * 2 + holder.seen


def cells_of_the_caller(x):
    n = 1

    def bump():
        nonlocal n
        n += 2

    y = inner(x * 3)
    bump()
    return y * n


def names_of_the_caller(x):
    y = inner(x * 3)
    found = sorted(name for name in locals() if name != "found")
    return y * len(found)


def an_error_that_the_caller_handles(x):
    y = x * 2
    try:
        y = inner(y)
        if y.shape[0] == 2:
            raise KeyError("two")
        y = y + 100
    except KeyError as error:
        y = y + len(error.args[0])
    return y


def inside_of_a_handler(x):
    y = x * 2
    try:
        raise ValueError("three")
    except ValueError as error:
        y = inner(y) + len(str(error))
    return y


def inside_of_no_grad(x):
    y = x * 2
    with torch.no_grad():
        z = inner(y)
        z = z + 1
    return y * z


class Base:
    def scaled(self, x):
        return inner(x * 2).sin()


class Derived(Base):
    def scaled(self, x):
        return super().scaled(x + 1) * 2


def above_super(x):
    return Derived().scaled(x * 3) + 1


def a_comprehension_behind(x):
    ys = list(inner(x * 2))
    return torch.stack([y * i for i, y in enumerate(ys)]).sum(0)


def unpacked(x):
    def pair(x):
        y = inner(x * 2)
        return y, y.sin()

    a, b = pair(x)
    return a * b


def behind_an_in_place_write(x):
    y = x * 2
    z = inner(y)
    z.mul_(3)
    return z + y


# program: (graphs, breaks)
PROGRAMS = {
    two_breaks: (3, 2),
    a_break_in_the_next_call: (3, 2),
    many_levels: (2, 1),
    returns_without_work: (2, 1),
    writes_to_objects: (2, 1),
    cells_of_the_caller: (2, 1),
    names_of_the_caller: (3, 2),
    an_error_that_the_caller_handles: (2, 1),
    inside_of_a_handler: (4, 3),
    inside_of_no_grad: (2, 1),
    above_super: (2, 1),
    a_comprehension_behind: (2, 1),
    unpacked: (2, 1),
    behind_an_in_place_write: (2, 1),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_one_region_through_the_returns(program):
    judge(program)
    regions(*PROGRAMS[program])
    assert graphlift.counters()["hits"] > 0


def test_what_the_caller_holds_is_guarded():
    def program(x, n, flag, table):
        y = inner(x * 2)
        if flag:
            y = y + table["a"]
        return y * n

    compiled = graphlift.compile(program, dynamic=False)
    x = torch.ones(2, 3)
    for n, flag, a in [(2, True, 3), (2, True, 3), (3, True, 3), (2, False, 3), (2, True, 4), (2, True, 3)]:
        torch.testing.assert_close(compiled(x, n, flag, {"a": a}), program(x, n, flag, {"a": a}))
    regions(5, 1)  # one up to the break, one for each of four contents of the caller


def test_a_caller_in_a_loop_shares_what_is_inside_of_it():
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = torch.nn.Linear(4, 4)

        def forward(self, x):
            return inner(self.lin(x)).relu()

    class Net(torch.nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.layers = torch.nn.ModuleList(Layer() for _ in range(depth))

        def forward(self, x):
            for layer in self.layers:
                x = layer(x) + x
            return x

    graphs = []
    for depth in (2, 12):
        graphlift.reset()
        net, x = Net(depth), torch.ones(2, 4)
        compiled = graphlift.compile(net)
        for _ in range(3):
            torch.testing.assert_close(compiled(x), net(x))
        assert graphlift.counters()["given_up"] == 0
        graphs.append(graphlift.counters()["graphs"])
    assert graphs[0] == graphs[1] <= 5


def test_many_callers_share_a_region():
    def make(i):
        namespace = {"inner": inner}
        exec(f"def caller(x):\n    y = inner(x * {i + 2})\n    return y + {i}\n", namespace)
        return namespace["caller"]

    callers = [make(i) for i in range(7)]

    def program(x, k):
        y = x.sin()
        z = callers[k](y)
        return z * 2

    compiled = graphlift.compile(program, dynamic=False)
    x = torch.ones(3)
    for k in range(7):
        for _ in range(2):
            torch.testing.assert_close(compiled(x, k), program(x, k))
    counts = graphlift.counters()
    assert counts["given_up"] == 0
    # Each caller up to the break; the rest of inner with four callers, then with any, and the rest of the other three.
    assert counts["graphs"] == 7 + 4 + 1 + 3, counts


class Dies:
    def __init__(self, log):
        self.log = log

    def __del__(self):
        self.log.append("died")


def test_what_dies_with_the_inner_frame_has_died_for_the_caller():
    def holds(x, log):
        held = Dies(log)
        y = opaque(x * 2)
        y = y + (held is not None)
        return y * 3

    def program(x, log):
        y = holds(x + 1, log)
        return y * (1 + len(log))

    compiled = graphlift.compile(program)
    for _ in range(3):
        logs = [], []
        torch.testing.assert_close(compiled(torch.ones(2), logs[0]), program(torch.ones(2), logs[1]))
        assert logs[0] == logs[1] == ["died"]


class Plain:
    pass


def test_weak_references_to_what_the_inner_frame_held():
    made = []

    @graphlift.disable
    def make(x):
        thing = Plain()
        made.append(weakref.ref(thing))
        return thing

    def holds(x):
        y = x * 2
        thing = make(y)
        y = y + (thing is not None)
        return y * 3

    def program(x):
        y = holds(x + 1)
        return y + 1 if made[-1]() is None else y - 1

    compiled = graphlift.compile(program)
    for _ in range(3):
        torch.testing.assert_close(compiled(torch.ones(2)), program(torch.ones(2)))


def test_memory_of_left_frames_is_given_back():
    def program(x):
        y = inner(x * 3)
        return y.sin()

    compiled = graphlift.compile(program)
    references = []

    for _ in range(3):
        x = torch.ones(4)
        references.append(weakref.ref(x))
        compiled(x)
        del x
    gc.collect()
    SEEN.clear()
    assert [one() for one in references] == [None] * 3
    regions(2, 1)


@graphlift.disable
def a_list_with_one_that_dies(log):
    return [Dies(log)]


@graphlift.disable
def one_with_a_callback(log):
    thing = Plain()
    weakref.finalize(thing, log.append, "gone")
    return thing


@graphlift.disable
def a_generator_with_a_finally(log):
    def generator():
        try:
            yield 1
        finally:
            log.append("closed")

    made = generator()
    next(made)
    return made


@graphlift.disable
def one_whose_end_runs_code_with_breaks(log):
    class Ends:
        def __del__(self):
            def innermost(x):
                y = opaque(x * 7)
                return y + 1

            def middle(x):
                y = innermost(x + 1)
                return y * 2

            log.append(float(middle(torch.ones(2)).sum()))

    return [Ends()]


def held_by_a_local(make):
    def holds(x, log):
        held = make(log)
        y = opaque(x * 2)
        return y * 3 + (held is None)

    return lambda x, log: holds(x + 1, log)


def held_by_the_call(make):
    def holds(x, held):
        y = opaque(x * 2)
        return y * 3

    return lambda x, log: holds(x + 1, make(log))


def held_by_a_call_with_tuples(make):
    def holds(x, *held, **others):
        y = opaque(x * 2)
        return y * 3

    return lambda x, log: holds(x + 1, *[make(log)], **{"other": 1})


def held_now_and_then(make):
    calls = []

    @graphlift.disable
    def sometimes(log):
        calls.append(log)
        return make(log) if len(calls) % 2 == 0 else [1]

    return held_by_a_local(sometimes)


@pytest.mark.parametrize(
    "make",
    [
        a_list_with_one_that_dies,
        one_with_a_callback,
        a_generator_with_a_finally,
        one_whose_end_runs_code_with_breaks,
    ],
    ids=lambda make: make.__wrapped__.__name__ if hasattr(make, "__wrapped__") else make.__name__,
)
@pytest.mark.parametrize(
    "way", [held_by_a_local, held_by_the_call, held_by_a_call_with_tuples, held_now_and_then], ids=lambda w: w.__name__
)
def test_what_acts_as_it_dies_with_the_inner_frame_is_seen_by_the_caller(make, way):
    def program(of, x, log):
        y = of(x, log)
        return y * (1 + len(log))

    compiled = graphlift.compile(program)
    of = way(make), way(make)
    for _ in range(4):
        logs = [], []
        got, want = compiled(of[0], torch.ones(2), logs[0]), program(of[1], torch.ones(2), logs[1])
        torch.testing.assert_close(got, want)
        assert logs[0] == logs[1]
    assert graphlift.counters()["graphs"] > 0
