"""Small values between the calls of a region on a GPU lie in one block of the allocator's, asked for in each run."""

import pytest
import torch
from norms import Norms

import graphlift

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def compiled(**options):
    model = Norms(size=64).cuda()
    before = graphlift.counters()["in_arenas"]
    return model, graphlift.compile(model, fullgraph=True, **options), before


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_results_are_eagers_and_the_callers(mode):
    model, call, before = compiled(mode=mode)
    kept = []
    with torch.no_grad():
        for seed in range(6):
            torch.manual_seed(seed)
            x = torch.randn(8, 64, device="cuda")
            kept.append((call(x), model(x)))
    assert graphlift.counters()["in_arenas"] - before > 4
    for got, expected in kept:
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


def test_gradients():
    model, call, before = compiled()
    eager = Norms(size=64).cuda()
    weight = torch.arange(64.0, device="cuda")
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.randn(8, 64, device="cuda")
        for module in (eager, call):
            (module(x) * weight).sum().backward()
    assert graphlift.counters()["in_arenas"] - before > 0
    for ours, theirs in zip(model.parameters(), eager.parameters()):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-3)


def test_a_run_asks_for_its_result_and_one_block():
    def asked(skip):
        _, call, _ = compiled(options={"skip_passes": skip})
        x = torch.randn(8, 64, device="cuda")
        with torch.no_grad():
            kept = [call(x) for _ in range(3)]
            before = torch.cuda.memory_stats()["allocation.all.allocated"]
            kept.append(call(x))
            return torch.cuda.memory_stats()["allocation.all.allocated"] - before

    assert asked("") == 2
    assert asked("arena") > 4


def test_streams():
    model, call, _ = compiled()
    streams = [torch.cuda.Stream() for _ in range(3)]
    inputs = [torch.full((8, 64), float(i), device="cuda") for i in range(3)]
    with torch.no_grad():
        expected = [model(x) for x in inputs]
        torch.cuda.synchronize()
        results = []
        for _ in range(50):
            for stream, x in zip(streams, inputs):
                with torch.cuda.stream(stream):
                    results.append(call(x))
        torch.cuda.synchronize()
    for i, got in enumerate(results):
        torch.testing.assert_close(got, expected[i % 3], rtol=1e-4, atol=1e-5)
