"""The mode "reduce-overhead" on a GPU: launches are recorded and replayed; results are eager's and stay the caller's."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import graphlift

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


def net(dropout=0.0):
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Dropout(dropout), nn.Linear(128, 32)
    ).cuda()


def replays(call):
    before = graphlift.counters()["replays"]
    result = call()
    return graphlift.counters()["replays"] - before, result


def test_results_that_are_kept_stay():
    model = net()
    compiled = graphlift.compile(model, mode="reduce-overhead")
    inputs = [torch.randn(8, 64, device="cuda") for _ in range(10)]
    with torch.no_grad():
        count, results = replays(lambda: [compiled(x) for x in inputs])
        assert count >= 3
        for x, y in zip(inputs, results, strict=True):
            torch.testing.assert_close(y, model(x), rtol=1e-4, atol=1e-5)
        del results, y
        count, _ = replays(lambda: [compiled(x).sum().item() for x in inputs])
        assert count == len(inputs)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_training_equals_eager(dropout):
    def train(mode):
        model = net(dropout)
        step = model if mode is None else graphlift.compile(model, mode=mode)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        torch.manual_seed(3)
        losses = []
        for i in range(12):
            x = torch.full((16, 64), float(i), device="cuda").sin_() + torch.arange(64, device="cuda") / 64
            loss = F.mse_loss(step(x), x[:, :32])
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=i % 2 == 0)
            losses.append(loss)
        return torch.stack(losses).tolist(), [p.detach().clone() for p in model.parameters()]

    count, (losses, parameters) = replays(lambda: train("reduce-overhead"))
    assert count >= 2 * 8  # forward and backward
    plain_losses, plain = train("default")
    torch.testing.assert_close(losses, plain_losses, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(parameters, plain, rtol=1e-3, atol=1e-4)
    if not dropout:
        torch.testing.assert_close(losses, train(None)[0], rtol=1e-3, atol=1e-4)


def test_gradients_that_accumulate():
    model, plain = net(), net()
    compiled = graphlift.compile(model, mode="reduce-overhead")
    for i in range(8):
        x = torch.randn(8, 64, device="cuda")
        compiled(x).sum().backward()
        plain(x).sum().backward()
        for p, q in zip(model.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-3, atol=1e-3, msg=f"call {i}")


def test_two_forwards_before_one_backward():
    model, plain = net(), net()
    compiled = graphlift.compile(model, mode="reduce-overhead")
    for _ in range(6):
        x, y = torch.randn(8, 64, device="cuda"), torch.randn(8, 64, device="cuda")
        (compiled(x).sum() * compiled(y).sum()).backward()
        (plain(x).sum() * plain(y).sum()).backward()
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-3, atol=1e-2)


def test_weights_that_change_place_and_sizes_that_vary():
    model = net()
    compiled = graphlift.compile(model, mode="reduce-overhead")
    with torch.no_grad():
        for i in range(12):
            if i % 4 == 3:
                model[0].weight.data = torch.randn(128, 64, device="cuda") / 8
            x = torch.randn(4 + i % 3, 64, device="cuda")
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)


def test_other_streams_and_the_programs_own_recording():
    model = net()
    compiled = graphlift.compile(model, mode="reduce-overhead")
    x = torch.randn(8, 64, device="cuda")
    with torch.no_grad():
        expected = model(x)
        for _ in range(4):
            compiled(x)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(4):
                torch.testing.assert_close(compiled(x), expected, rtol=1e-4, atol=1e-5)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = compiled(x)
        x.fill_(0.5)
        graph.replay()
        torch.testing.assert_close(y, model(x), rtol=1e-4, atol=1e-5)


def test_a_number_of_the_cpu_is_not_frozen():
    compiled = graphlift.compile(lambda x, n: x * n + 1, mode="reduce-overhead")
    x = torch.ones(4, device="cuda")
    for i in range(8):
        assert compiled(x, i + 0.5).tolist() == [i + 1.5] * 4


def test_what_cant_be_recorded_runs_as_it_is():
    """An inverse waits for the GPU: the recording fails, and random numbers go on behind it."""
    x = torch.eye(4, device="cuda") * 2

    def tries():
        compiled = graphlift.compile(lambda x: (x * 2, torch.linalg.inv(x)), mode="reduce-overhead")
        for _ in range(5):
            y, inverse = compiled(x)
            assert torch.equal(y, x * 2) and torch.equal(inverse, torch.eye(4, device="cuda") / 2)

    tries()  # torch's libraries keep a workspace for each stream that they were used on
    before = torch.cuda.memory_allocated()
    tries()
    torch.manual_seed(0)
    first = torch.randn(3, device="cuda")
    torch.manual_seed(0)
    assert torch.equal(first, torch.randn(3, device="cuda"))
    assert torch.cuda.memory_allocated() < before + 2**20


def layers(count=6, width=1024):
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(count)]).cuda()


def test_backward_uses_up_what_its_forward_saved():
    """Also while it is recorded there is not more in memory than without recordings."""
    x, peaks = torch.randn(8192, 1024, device="cuda"), {}
    for mode in ("default", "reduce-overhead"):
        compiled = graphlift.compile(layers(), mode=mode)
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        before_replays = graphlift.counters()["replays"]
        for _ in range(6):
            compiled(x).square().mean().backward()
            for parameter in compiled.parameters():
                parameter.grad = None
        assert (graphlift.counters()["replays"] - before_replays >= 8) == (mode == "reduce-overhead")
        peaks[mode] = torch.cuda.max_memory_allocated() - before
        del compiled
        graphlift.reset()
    assert peaks["reduce-overhead"] <= 1.05 * peaks["default"] + 2**25, peaks


def test_backward_twice_and_in_another_order():
    model, plain = layers(2, 64), layers(2, 64)
    compiled = graphlift.compile(model, mode="reduce-overhead")

    def gradients(model, loss, **options):
        return torch.autograd.grad(loss, list(model.parameters()), **options)

    def check(one, other):
        for p, q in zip(one, other, strict=True):
            torch.testing.assert_close(p, q, rtol=1e-3, atol=1e-3)

    kept, before = [], graphlift.counters()["replays"]
    for i in range(12):
        pairs = []
        for _ in range(1 + i % 3):
            x = torch.randn(16, 64, device="cuda")
            pairs.append((compiled(x).sum(), plain(x).sum()))
        for ours, theirs in reversed(pairs) if i % 2 else pairs:
            if i % 4 == 3:
                again = gradients(model, ours, retain_graph=True)
                check(again, gradients(plain, theirs, retain_graph=True))
            kept.append((gradients(model, ours), gradients(plain, theirs)))
        kept = kept[-3:]
        for ours, theirs in kept:
            check(ours, theirs)
    assert graphlift.counters()["replays"] > before
