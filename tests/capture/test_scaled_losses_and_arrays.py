"""A GradScaler on CPU, and numpy arrays as arguments: regions and breaks are counted, everything is eager's."""

import numpy
import pytest
import torch
from judging import regions
from torch import nn

import graphlift


def scaled_steps(wrap, poison=-1, whole=True):
    """Losses, parameters and the scaler's state of eight steps; the gradient of step number `poison` is infinite."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=3)

    def forward(x):
        return net(x).pow(2).mean()

    def step(x):
        optimizer.zero_grad()
        loss = forward(x)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    if not whole:
        forward = wrap(forward)
    run = wrap(step) if whole else step
    losses = []
    for k in range(8):
        x = torch.linspace(-1, 1, 12).reshape(3, 4) * (k + 1)
        losses.append(run(x * float("inf") if k == poison else x))
    moments = [optimizer.state[p]["momentum_buffer"] for p in net.parameters()]
    return losses, [p.detach() for p in net.parameters()], moments, scaler.state_dict()


@pytest.mark.parametrize("poison", [-1, 4])
def test_a_loss_that_is_scaled_outside_of_the_region(poison):
    got, want = (scaled_steps(wrap, poison, whole=False) for wrap in (graphlift.compile, lambda f: f))
    torch.testing.assert_close(got[:3], want[:3], equal_nan=True)
    assert got[3] == want[3] and (poison < 0 or got[3]["scale"] != 1024.0)
    regions(graphs=1, breaks=0)


@pytest.mark.parametrize("poison", [-1, 4])
def test_a_whole_step_with_a_scaler(poison):
    got, want = (scaled_steps(wrap, poison) for wrap in (graphlift.compile, lambda f: f))
    torch.testing.assert_close(got[:3], want[:3], equal_nan=True)
    assert got[3] == want[3]
    counts = graphlift.counters()
    # Breaks at what the scaler reads: whether a gradient is infinite, in step() and in update(), and its dict of devices.
    assert (counts["graphs"], counts["graph_breaks"]) == (5, 3), counts
    assert counts["internal_errors"] == counts["given_up"] == 0, counts


def from_an_array(x, array):
    return x + torch.from_numpy(array)


def as_tensor(x, array):
    return x * torch.as_tensor(array) + 1


def of_its_shape(x, array):
    return x.reshape(-1)[: array.shape[0]] * array.ndim


def an_item_of_it(x, array):
    return x * float(array[0])


def handed_through(x, array):
    return x + 1, array


# Graphs and breaks: a tensor on an array's memory is an input, its shape is guarded; what is in it breaks, for no guard
# sees that.
ARRAYS = {from_an_array: (1, 0), as_tensor: (1, 0), of_its_shape: (1, 0), an_item_of_it: (3, 2), handed_through: (1, 0)}


@pytest.mark.parametrize("program", ARRAYS, ids=lambda f: f.__name__)
def test_arrays_as_arguments(program):
    """Other values each time: none may be taken as fixed."""
    graphlift.reset()
    compiled = graphlift.compile(program)
    for k in range(3):
        x, array = torch.randn(3), numpy.arange(3, dtype=numpy.float32) + k
        got, want = compiled(x, array), program(x, array)
        if program is handed_through:
            assert got[1] is array
            got, want = got[0], want[0]
        torch.testing.assert_close(got, want)
    counts = graphlift.counters()
    assert (counts["graphs"], counts["graph_breaks"]) == ARRAYS[program], (program.__name__, counts)
    assert counts["internal_errors"] == counts["given_up"] == 0


def test_a_tensor_over_an_arrays_memory_is_written_for_both():
    def program(x, array):
        there = torch.from_numpy(array)
        there.add_(x)
        return there * 2

    compiled = graphlift.compile(program)
    for _ in range(3):
        x, mine, theirs = torch.randn(3), numpy.ones(3, numpy.float32), numpy.ones(3, numpy.float32)
        torch.testing.assert_close(compiled(x, mine), program(x, theirs))
        assert (mine == theirs).all()
    assert graphlift.graph_count() >= 1


def test_results_become_arrays():
    def program(x):
        y = (x * 2).sin()
        array = y.numpy()
        return torch.from_numpy(array + 1) * 3, array

    compiled = graphlift.compile(program)
    for _ in range(3):
        x = torch.randn(4)
        for got, want in zip(compiled(x), program(x), strict=True):
            torch.testing.assert_close(torch.as_tensor(got), torch.as_tensor(want))
    counts = graphlift.counters()
    assert counts["graphs"] == 1 and counts["graph_breaks"] == 0 and counts["internal_errors"] == 0, counts
