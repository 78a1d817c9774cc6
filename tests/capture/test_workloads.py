"""The measurements' workloads at small size, and the memory of a long training run."""

import gc
import importlib
import sys
import threading
import weakref
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import graphlift

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "bench"))
one_region = importlib.import_module("one_region")
workloads = importlib.import_module("models").WORKLOADS


@pytest.mark.without_passes
@pytest.mark.parametrize("name", workloads)
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("backend", ["reference", "native"])
def test_one_region_that_equals_eager(name, training, backend):
    regions, breaks, worst = one_region.check(name, small=True, training=training, backend=backend)
    assert (regions, breaks) == (1, 0)
    assert worst < 1e-5


def living():
    """Tensors and other objects that are alive, by number, and the bytes of the tensors."""
    gc.collect()
    objects = gc.get_objects()
    tensors = [item for item in objects if type(item) in (torch.Tensor, nn.Parameter) and item.layout is torch.strided]
    return len(tensors), sum(tensor.untyped_storage().nbytes() for tensor in tensors), len(objects)


def test_memory_of_200_steps():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 32))
    compiled, optimizer = graphlift.compile(model), torch.optim.AdamW(model.parameters(), lr=1e-4)
    x, y, marks = torch.randn(16, 32), torch.randn(16, 32), {}
    for step in range(1, 201):
        optimizer.zero_grad()
        F.mse_loss(compiled(x), y).backward()
        optimizer.step()
        if step in (10, 200):
            marks[step] = living()
    assert marks[10][:2] == marks[200][:2], marks
    assert marks[200][2] < marks[10][2] + 95, marks  # less than one object every second step
    counts = graphlift.counters()
    assert counts["graphs"] == 1 and counts["hits"] == 199 and counts["live_regions"] == 1, counts
    graphlift.reset()
    assert graphlift.counters()["live_regions"] == 0


def test_reset_leaves_no_region_of_any_kind():
    def broken(x):
        y = x * 2
        return y + y.sum().item()

    compiled = [graphlift.compile(broken), graphlift.compile(nn.Linear(3, 3)), graphlift.compile(lambda x: x.size(0))]
    for function in compiled:
        for rows in (2, 4, 7):
            function(torch.ones(rows, 3))
    assert graphlift.counters()["live_regions"] >= 4
    graphlift.reset()
    assert graphlift.counters()["live_regions"] == 0
    assert compiled[0](torch.ones(1, 3)).tolist() == [[8.0] * 3]


def test_a_region_dies_with_its_module_and_so_does_what_it_holds():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    compiled = graphlift.compile(model)
    weight, output = weakref.ref(model[0].weight), compiled(torch.ones(2, 3))
    assert graphlift.counters()["live_regions"] == 1
    del compiled, model
    gc.collect()
    assert graphlift.counters()["live_regions"] == 0
    output.sum().backward()  # what autograd needs is kept by the output alone
    assert weight() is not None
    del output
    gc.collect()
    assert weight() is None


def test_regions_that_threads_made_at_once_are_dropped():
    """Of regions for the same call one is kept."""
    model, x, barrier = nn.Sequential(*(nn.Linear(16, 16) for _ in range(6))), torch.ones(2, 16), threading.Barrier(4)
    compiled, want, results = graphlift.compile(model), model(x), []

    def call():
        barrier.wait()
        results.append(compiled(x))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.testing.assert_close(results, [want] * 4)
    assert graphlift.counters()["live_regions"] == 1
    graphlift.reset()
    assert graphlift.counters()["live_regions"] == 0
