"""Memory of a GPU runs out inside of a region: torch's error reaches the caller, and all is as before the call."""

import contextlib

import pytest
import torch

import graphlift

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

MIB = 2**20


@contextlib.contextmanager
def only(mib):
    """No more than `mib` MiB beside what is reserved now."""
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + mib * MIB) / total)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def large(x, w):
    """16 MiB in, 1 GiB between and out."""
    return ((x.sin() * w).view(1, -1).expand(64, -1) * x).cumsum(0)


@pytest.mark.parametrize("mode", [None, "reduce-overhead", "max-autotune"])
@pytest.mark.parametrize("known", [False, True], ids=["first call", "later call"])
def test_forward(mode, known):
    x, w = torch.randn(4 * MIB, device="cuda"), torch.randn(4 * MIB, device="cuda")
    expected = large(x, w).sum(1)
    compiled = graphlift.compile(large, mode=mode)
    if known and mode is None:  # what is recorded has its memory already
        compiled(x, w)
    torch.cuda.synchronize()
    before, errors = torch.cuda.memory_allocated(), graphlift.counters()["internal_errors"]
    with only(256):
        for _ in range(3):
            with pytest.raises(torch.OutOfMemoryError):
                compiled(x, w)
            assert torch.cuda.memory_allocated() <= before + MIB
    for _ in range(4):
        torch.testing.assert_close(compiled(x, w).sum(1), expected, rtol=1e-4, atol=1e-2)
    assert graphlift.counters()["internal_errors"] == errors


def test_backward():
    x = torch.randn(4 * MIB, device="cuda", requires_grad=True)
    w = torch.randn(4 * MIB, device="cuda", requires_grad=True)
    expected = torch.autograd.grad(large(x, w).sum(), (x, w))
    compiled = graphlift.compile(large)
    for _ in range(2):
        loss = compiled(x, w).sum()
        with only(8), pytest.raises(torch.OutOfMemoryError):
            torch.autograd.grad(loss, (x, w), retain_graph=True)
        got = torch.autograd.grad(loss, (x, w))
        for a, b in zip(got, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-2)
