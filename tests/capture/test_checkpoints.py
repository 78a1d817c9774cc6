"""torch.utils.checkpoint inside of compiled code: one region, and what backward makes again is not saved."""

import contextvars
import functools
import math
import re

import pytest
import torch
from judging import check
from torch import nn
from torch.utils.checkpoint import checkpoint

import graphlift


class Block(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return x + self.dropout(self.down(torch.sigmoid(self.up(x)).square()))


class Net(nn.Module):
    def __init__(self, use_reentrant, checkpointed=True, dropout=0.0):
        super().__init__()
        self.blocks = nn.ModuleList(Block(16, dropout) for _ in range(3))
        self.use_reentrant, self.checkpointed = use_reentrant, checkpointed

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.use_reentrant) if self.checkpointed else block(x)
        return x.sum()


def made(**options):
    torch.manual_seed(0)
    return Net(**options)


@pytest.fixture
def saved_elements(caplog):
    """Elements that backward is given of what forward made: function, example input -> count."""

    def count(function, x):
        caplog.clear()
        graphlift.set_logs("aot_graphs")
        function(x)
        graphlift.set_logs()
        (text,) = [message for r in caplog.records if "\nbackward" in (message := r.getMessage())]
        sizes = re.findall(r": f32\[([\d, ]*)\]\{[^}]*\} cpu = input saved", text[text.index("\nbackward") :])
        return sum(math.prod(int(size) for size in s.split(",") if size.strip()) for s in sizes)

    return count


def gradients(function, model, x):
    model.zero_grad()
    x = x.clone().requires_grad_()
    torch.manual_seed(3)
    loss = function(x)
    loss.backward()
    return [loss.detach(), x.grad, *(p.grad for p in model.parameters())]


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_equals_eager_in_one_region(dropout, reentrant):
    model = made(use_reentrant=reentrant, dropout=dropout)
    x = torch.randn(8, 16)
    expected = gradients(model, model, x)
    compiled = graphlift.compile(model.forward, fullgraph=True, backend="reference")
    before = graphlift.graph_count()
    for _ in range(2):
        for got, eager in zip(gradients(compiled, model, x), expected, strict=True):
            torch.testing.assert_close(got, eager)
    assert graphlift.graph_count() == before + 1


@pytest.mark.parametrize("reentrant", [False, True])
def test_memory_is_saved(saved_elements, reentrant):
    x = torch.randn(8, 16, requires_grad=True)
    plain, with_checkpoints = made(use_reentrant=False, checkpointed=False), made(use_reentrant=reentrant)
    most = saved_elements(graphlift.compile(plain.forward, fullgraph=True), x)
    least = saved_elements(graphlift.compile(with_checkpoints.forward, fullgraph=True), x)
    assert most >= 3 * 8 * 64
    assert least <= 2 * 8 * 16, "what enters the second and the third block"


def test_a_break_inside_leaves_the_checkpoint_to_torch():
    model = made(use_reentrant=False)

    def breaks(block, x):
        y = block(x)
        return y * (1 if y.sum().item() < 1e9 else 2)

    def forward(x):
        for block in model.blocks:
            x = checkpoint(breaks, block, x, use_reentrant=False)
        return x.sum()

    x = torch.randn(8, 16)
    expected = gradients(forward, model, x)
    for got, eager in zip(gradients(graphlift.compile(forward), model, x), expected, strict=True):
        torch.testing.assert_close(got, eager)


def test_contexts_of_the_users_own_are_entered():
    entered = []

    class Told:
        def __enter__(self):
            entered.append(1)

        def __exit__(self, *error):
            return False

    def forward(x):
        return checkpoint(torch.sin, x, use_reentrant=False, context_fn=lambda: (Told(), Told())).sum()

    x = torch.randn(4, requires_grad=True)
    graphlift.compile(forward)(x).backward()
    assert entered and torch.allclose(x.grad, torch.cos(x.detach()))


def test_cached_property():
    class Scaled:
        made = 0

        def __init__(self, x):
            self.x = x

        @functools.cached_property
        def double(self):
            """Twice x."""
            self.made += 1
            return self.x * 2

    def fresh(x):
        scaled = Scaled(x)
        return scaled.double + scaled.double, scaled.made

    compiled = graphlift.compile(fresh, fullgraph=True)
    x = torch.randn(3)
    for _ in range(2):
        got, times = compiled(x)
        assert torch.equal(got, x * 4) and times == 1

    outside = Scaled(x)

    def reads():
        return outside.double + 1

    compiled = graphlift.compile(reads, fullgraph=True)
    for _ in range(3):
        assert torch.equal(compiled(), x * 2 + 1)
    assert outside.made == 1 and torch.equal(outside.__dict__["double"], x * 2)


class Counting(torch.nn.Module):
    """What eager does twice, in forward and when backward makes the values again."""

    def __init__(self):
        super().__init__()
        self.norm, self.weight = torch.nn.BatchNorm1d(4), torch.nn.Parameter(torch.ones(4))
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls.add_(1)
        return (self.norm(x) * self.weight).sin()


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_is_written_to_in_a_checkpoint_is_written_to_again_by_backward(reentrant):
    def state_after(compile):
        torch.manual_seed(5)
        module = Counting()
        function = compile(lambda x: checkpoint(module, x * 2, use_reentrant=reentrant).sum() * 3)
        for _ in range(3):
            x = torch.randn(6, 4, requires_grad=True)
            function(x).backward()
        return [*module.state_dict().values(), x.grad, module.weight.grad]

    graphlift.reset()
    for got, eager in zip(state_after(graphlift.compile), state_after(lambda f: f), strict=True):
        torch.testing.assert_close(got, eager)
    assert graphlift.graph_count() >= 1


def test_what_is_printed_in_a_checkpoint_is_printed_again_by_backward(capsys):
    def told(compile):
        def inside(x):
            print("inside")
            return x.sin()

        function = compile(lambda x: checkpoint(inside, x * 2, use_reentrant=False).sum())
        for _ in range(2):
            function(torch.ones(3, requires_grad=True)).backward()
        return capsys.readouterr().out

    assert told(graphlift.compile) == told(lambda f: f) == "inside\n" * 4


CHANGED = contextvars.ContextVar("CHANGED", default=0)


@pytest.mark.parametrize("what", ["attribute", "list", "context"])
def test_what_is_changed_in_a_checkpoint_is_changed_again_by_backward(what):
    def counts(compile):
        module, seen = Counting(), []
        module.steps = 0
        CHANGED.set(0)

        def inside(x):
            if what == "attribute":
                module.steps += 1
            elif what == "list":
                seen.append(module.steps)
            else:
                CHANGED.set(CHANGED.get() + 1)
            return x.sin()

        function = compile(lambda x: checkpoint(inside, x * 2, use_reentrant=False).sum() * 3)
        for _ in range(3):
            x = torch.ones(3, requires_grad=True)
            function(x).backward()
        return module.steps, seen, CHANGED.get(), x.grad.tolist()

    graphlift.reset()
    got, want = (contextvars.copy_context().run(counts, f) for f in (graphlift.compile, lambda f: f))
    assert got == want and 6 in (want[0], len(want[1]), want[2])
    assert graphlift.graph_count() >= 1


def test_containers_that_are_only_read_in_a_checkpoint():
    layers = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Sequential(nn.Tanh(), nn.Linear(3, 3))})
    scales = {"a": 2.0, "b": 3.0}

    def inside(x):
        for name, layer in layers.items():
            x = layer(x) * scales.get(name, 1.0)
        return x + len(list(scales.values()))

    def program(x):
        return checkpoint(inside, x * 2, use_reentrant=False) + 1

    check(program, lambda: (torch.linspace(-1, 1, 3).requires_grad_(),), graphs=1, breaks=0)


def test_what_ends_at_depth_runs_no_finally_of_generators(capsys):
    """The outer checkpoint is open where the inner one acts: its generator is emptied, not closed."""
    acts = []

    def inner(x):
        acts.append(1)
        return x * 2

    def program(x):
        outer = checkpoint(lambda y: checkpoint(inner, y * 2, use_reentrant=False) + 1, x * 2, use_reentrant=False)
        return outer.sum()

    compiled = graphlift.compile(program)
    for f in (program, compiled, compiled):
        f(torch.ones(3, requires_grad=True)).backward()
    assert len(acts) % 3 == 0 and graphlift.graph_count() >= 1
    assert capsys.readouterr().err == ""


WEIGHT = torch.linspace(-1, 1, 4).requires_grad_()


def several_results(x, y):
    a, b, c, d = checkpoint(lambda x, y: (x * WEIGHT, y, 3, (x > 0).sum()), x, y, use_reentrant=True)
    return (a * b).sum() + c, a, b, d


def a_constant_result(x, y):
    mask, z = checkpoint(lambda x: (torch.ones(4), x * 2), x, use_reentrant=True)
    return (z * mask * y).sum(), mask.requires_grad


def nothing_requires_gradients(x, y):
    z = checkpoint(lambda x: x * WEIGHT, x.detach(), use_reentrant=True)
    return (z * y).sum(), z.requires_grad


def a_list_is_returned(x, y):
    items = checkpoint(lambda x: [x * 2, x * WEIGHT], x, use_reentrant=True)
    return (items[0] * y).sum(), [item.requires_grad for item in items]


def nested_checkpoints(x, y):
    def inner(x):
        return (x * WEIGHT).sin()

    def outer(x, y):
        return checkpoint(inner, x, use_reentrant=True) * y + checkpoint(inner, y, use_reentrant=False)

    return checkpoint(outer, x * 2, y, use_reentrant=True).sum()


@pytest.mark.filterwarnings("ignore:None of the inputs")
@pytest.mark.parametrize(
    "program",
    [several_results, a_constant_result, nothing_requires_gradients, a_list_is_returned, nested_checkpoints],
    ids=lambda f: f.__name__,
)
def test_a_reentrant_checkpoint(program):
    def made():
        WEIGHT.grad = None
        return torch.ones(4, requires_grad=True), torch.arange(4.0, requires_grad=True), WEIGHT

    check(lambda x, y, weight: program(x, y), made, graphs=1, breaks=0)


def test_a_reentrant_checkpoint_of_a_list():
    def program(x, y):
        return checkpoint(lambda pair: pair[0] * pair[1], [x, y], use_reentrant=True).sum()

    check(program, lambda: (torch.ones(3), torch.ones(3)))


@pytest.mark.parametrize("asked", ["grad mode", "requires_grad", "is_leaf"])
def test_what_is_another_one_in_backward_of_a_checkpoint_with_reentry(asked):
    """Eager runs the function without gradients, and again with them in backward."""
    questions = {
        "grad mode": lambda y: torch.is_grad_enabled(),
        "requires_grad": lambda y: y.requires_grad,
        "is_leaf": lambda y: not y.is_leaf,
    }

    def run(compile):
        told = []

        def inside(x):
            y = x * 2
            yes = questions[asked](y)
            told.append(yes)
            return y.sin() if yes else y * y

        function = compile(lambda x: checkpoint(inside, x * 3, use_reentrant=True) * 2)
        results = []
        for _ in range(3):
            x = torch.linspace(-1, 1, 4).requires_grad_()
            result = function(x)
            result.sum().backward()
            results += [result.detach(), x.grad]
        return told, results

    graphlift.reset()
    (told, got), (eager_told, want) = run(graphlift.compile), run(lambda f: f)
    assert told == eager_told == [False, True] * 3
    for mine, eager in zip(got, want, strict=True):
        torch.testing.assert_close(mine, eager)
    assert graphlift.graph_count() >= 1


def test_what_is_the_same_in_both_runs_of_a_checkpoint_with_reentry():
    weight = nn.Parameter(torch.ones(4))

    def inside(x):
        with torch.no_grad():
            scale = x.abs().max() if not torch.is_grad_enabled() else x.sum()
        with torch.enable_grad():
            y = x * weight if weight.requires_grad and weight.is_leaf else x
        return (y / scale).sin()

    def program(x):
        return checkpoint(inside, x * 3, use_reentrant=True) * 2

    check(program, lambda: (torch.linspace(-1, 1, 4).requires_grad_(),), graphs=1, breaks=0)
