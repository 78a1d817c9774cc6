"""Small values between the calls of a region lie in one block that is kept: results are eager's, whoever calls when."""

import threading

import pytest
import torch
from closeness import close
from norms import Norms
from torch.profiler import ProfilerActivity, profile

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")


def planned():
    return graphlift.counters()["in_arenas"]


@pytest.mark.parametrize("skip, least", [("", 5), ("arena", 0)])
def test_inference(skip, least):
    model, before = Norms(), planned()
    compiled = graphlift.compile(model, fullgraph=True, options={"skip_passes": skip})
    kept = []
    with torch.no_grad():
        for seed in range(4):
            torch.manual_seed(seed)
            x = torch.randn(3, 16)
            kept.append((compiled(x), model(x)))
    assert planned() - before >= least and (least or planned() == before)
    for got, expected in kept:  # what a caller keeps is not written over
        assert not close(expected, got)


def test_training():
    eager, model, before = Norms(), Norms(), planned()
    compiled = graphlift.compile(model, fullgraph=True)
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.randn(5, 16)
        for module in (eager, compiled):
            (module(x) * torch.arange(16.0)).sum().backward()
    assert planned() - before > 0
    for ours, theirs in zip(model.parameters(), eager.parameters()):
        assert not close(theirs.grad, ours.grad)


def test_a_call_allocates_its_result_and_nothing_else():
    model, x = Norms(), torch.randn(3, 16)

    def allocations(skip):
        compiled = graphlift.compile(model, options={"skip_passes": skip})
        with torch.no_grad():
            for _ in range(3):
                compiled(x)
            with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
                compiled(x)
        events = found.profiler.kineto_results.events()
        return sum(event.name() == "[memory]" and event.nbytes() > 0 for event in events)

    assert allocations("") == 1
    assert allocations("arena") > 4


def test_threads():
    model = Norms()
    compiled = graphlift.compile(model, fullgraph=True)
    inputs = [torch.full((3, 16), float(i)) for i in range(8)]
    with torch.no_grad():
        expected = [model(x) for x in inputs]
        compiled(inputs[0])
    wrong = []

    def work(i):
        with torch.no_grad():
            for _ in range(300):
                if not torch.allclose(compiled(inputs[i]), expected[i], atol=1e-5):
                    wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def halves(x, w):
    first, second = torch.unsafe_split(x @ w, 4, 1)
    small = x @ w.t() @ w
    between = (small @ w)[:, :4].contiguous()
    return first * between.cumsum(0) + second.cumsum(0) + small.cumsum(1)[:, :4]


def test_an_operator_whose_schema_hides_that_it_answers_with_views():
    torch.manual_seed(0)
    x, w, before = torch.randn(4, 8), torch.randn(8, 8), planned()
    compiled = graphlift.compile(halves, fullgraph=True)
    with torch.no_grad():
        for _ in range(3):
            assert not close(halves(x, w), compiled(x, w))
    assert planned() > before, "others are planned"


@pytest.fixture
def custom():
    """Operators of a library of the test's own, gone behind it."""
    library = torch.library.Library("graphlift_arena", "FRAGMENT")
    yield library
    library._destroy()


def between(x):
    y = torch.ops.graphlift_arena.act((x + 1).sin().sum(-1, keepdim=True) @ x[:1] * 2)
    return torch.tanh(y.cumsum(0) + 1).cumsum(1) * x


def defined(library, act):
    library.define("act(Tensor x) -> Tensor")
    library.impl("act", act, "CPU")
    library.impl("act", torch.empty_like, "Meta")
    return graphlift.compile(between, fullgraph=True)


def test_an_operator_that_keeps_its_argument(custom):
    kept = []

    def act(x):
        kept.append((x, x.clone()))
        return x * 3

    compiled = defined(custom, act)
    for seed in range(4):
        torch.manual_seed(seed)
        x = torch.randn(4, 6)
        assert not close(between(x), compiled(x))
    assert all(torch.equal(now, then) for now, then in kept)


def test_an_operator_that_raises(custom):
    calls = []

    def act(x):
        calls.append(x.shape)
        if len(calls) % 3 == 0:
            raise ValueError("the third call")
        return x * 3

    compiled = defined(custom, act)
    x = torch.randn(4, 6)
    expected = between(x)
    for _ in range(9):
        try:
            assert not close(expected, compiled(x))
        except ValueError as error:
            assert "the third call" in str(error)
    assert len(calls) >= 9


def test_a_run_within_a_run_of_the_same_region(custom):
    depth, inner = [], [between]

    def act(x):
        if len(depth) == 2:
            return x * 3
        depth.append(0)
        found = inner[0](torch.full((4, 6), float(len(depth))))
        depth.pop()
        return x * 3 + found.sum()

    compiled = defined(custom, act)
    x = torch.randn(4, 6)
    expected = between(x)
    compiled(x)
    inner[0] = compiled  # below the operator other guards hold, so that is a region of its own: it runs within itself
    compiled(x)
    before = planned()
    for _ in range(3):
        assert not close(expected, compiled(x))
    assert planned() == before
