"""Modes of torch around and inside compiled functions, and random draws: eager judges values, dtypes and histories."""

import contextlib

import pytest
import torch
import torch.nn.functional as F
from judging import check, same
from torch import nn

import graphlift


def leaf():
    return torch.tensor([[1.0, -2.0], [0.5, 3.0]], requires_grad=True)


def grad_modes_inside(x):
    with torch.no_grad():
        fixed = x * 2
        with torch.enable_grad():
            flowing = x * 3
    seen = [torch.is_grad_enabled()]
    with torch.set_grad_enabled(False):
        seen.append(torch.is_grad_enabled())
        other = x.sin()
    return fixed, flowing, other, seen, x + fixed


@torch.no_grad()
def decorated(x):
    return x * 2


def calls_decorated(x):
    return decorated(x) + x, decorated(x)


def autocast_inside(x):
    with torch.autocast("cpu", torch.bfloat16):
        low = x @ x
        with torch.autocast("cpu", enabled=False):
            high = x @ x
    return low, high, x @ x


def factories(x):
    return torch.ones(2) + x, torch.zeros(3, dtype=torch.int32), torch.arange(3), torch.full((2,), 1.5), x * 2


def draws(x):
    noise = torch.rand(3) + torch.randn(3)
    return F.dropout(x, 0.4), noise, torch.randint(0, 9, (4,)), torch.randperm(5), torch.empty(3).uniform_(2, 3)


PROGRAMS = [grad_modes_inside, calls_decorated, factories, draws]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_inside(program):
    check(program, lambda: (leaf(),), graphs=1, breaks=0)


def test_autocast_inside():
    check(autocast_inside, lambda: (leaf(),))


def double_by_default():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def meta_by_default():
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


def deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


MODES = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "default_dtype": contextlib.contextmanager(double_by_default),
    "deterministic": contextlib.contextmanager(deterministic),
}


def layers(x):
    return F.relu(x @ x) + 1, torch.ones(2) * 2, torch.is_grad_enabled()


@pytest.mark.parametrize("mode", MODES)
def test_around(mode):
    """A region is of the mode that it was captured in: entering or leaving the mode is a new region, coming back a hit."""
    compiled = graphlift.compile(layers)
    for _ in range(2):
        same(compiled(leaf()), layers(leaf()))
        with MODES[mode]():
            got, want = compiled(leaf()), layers(leaf())
            same(got, want)
            assert got[0].is_inference() == want[0].is_inference()
    counts = graphlift.counters()
    assert counts["graphs"] == 2 and counts["hits"] == 2 and counts["graph_breaks"] == 0, counts


def test_a_default_device_around():
    compiled = graphlift.compile(lambda n: torch.ones(n, 3) * 2)
    assert compiled(2).device.type == "cpu"
    with contextlib.contextmanager(meta_by_default)():
        assert compiled(2).device.type == "meta"
    assert compiled(2).tolist() == [[2.0] * 3] * 2


def test_the_same_seed_gives_the_same_masks_and_the_generator_goes_on():
    net = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5), nn.Linear(64, 64), nn.Dropout(0.3))
    compiled, x = graphlift.compile(net), torch.randn(3, 4)

    def run(model):
        torch.manual_seed(7)
        model.zero_grad()
        outputs = [model(x) for _ in range(3)]
        sum(output.sum() for output in outputs).backward()
        return outputs, [p.grad.clone() for p in net.parameters()], torch.rand(3)

    same(run(compiled), run(net))
    assert graphlift.graph_count() == 1 and graphlift.counters()["hits"] == 2


def test_a_mode_that_a_call_leaves_behind_is_left_behind():
    def switches(x):
        torch._C._set_grad_enabled(False)
        return x * 2

    compiled = graphlift.compile(switches)
    for _ in range(2):
        try:
            assert torch.is_grad_enabled()
            assert not compiled(leaf()).requires_grad and not torch.is_grad_enabled()
        finally:
            torch._C._set_grad_enabled(True)
    assert graphlift.graph_count() == 1


def test_anomaly_mode_is_guarded():
    def program(x):
        return x * 2, torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()

    compiled, x = graphlift.compile(program), torch.ones(3)
    for enabled, nan in [(False, True), (True, True), (True, False), (False, True), (True, True)]:
        with torch.autograd.set_detect_anomaly(enabled, nan):
            same(compiled(x), program(x))
    counts = graphlift.counters()
    assert (counts["graphs"], counts["hits"], counts["graph_breaks"]) == (3, 2, 0), counts
