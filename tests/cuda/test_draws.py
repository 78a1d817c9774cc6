"""Random draws inside of CUDA kernels: eager's numbers bit for bit, and torch's generator goes on as in eager."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import draw_model
import pytest
import torch
from torch.nn import functional as F

import graphlift

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


# Of the paper's reference code: counter, key, numbers.
@pytest.mark.parametrize(
    "counter, key, numbers",
    [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_the_model_is_philox(counter, key, numbers):
    assert draw_model.philox(counter, key) == numbers


@pytest.mark.parametrize("elements, vector", [(1, 4), (1000, 4), (8192, 8), (5000, 2), (1000, 1), (9000, 4), (7777, 8)])
def test_places_are_the_models(elements, vector):
    runtime = pytest.importorskip("graphlift_runtime")
    seed, offset = 0x123456789ABCDEF, (5 << 34) + 8
    threads = draw_model.blocks(elements, 4) * draw_model.BLOCK
    expected = draw_model.draws(seed, offset, elements, vector, 4)
    while elements % vector:
        vector //= 2
    assert [runtime.uniform_at(seed, offset, i, threads, vector) for i in range(elements)] == expected


@pytest.mark.skipif(shutil.which(os.environ.get("CXX", "g++")) is None, reason="there is no C++ compiler")
@pytest.mark.skipif(torch.cuda.is_available(), reason="torch's libraries of CUDA need the real ones")
def test_emulated_kernels_draw_as_the_model(tmp_path):
    pytest.importorskip("graphlift_runtime")
    program = Path(__file__).parent / "emulated.py"
    done = subprocess.run(
        [sys.executable, str(program), "draws"],
        env={**os.environ, "EMULATED_FOLDER": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "7 right"


# --- on a GPU ---------------------------------------------------------------------------------------------------------
SIZES = [(1,), (1000,), (2**20 + 3,), (2**20 + 2,), (4096, 1024), (3, 5, 8), (2**24,)]


def several(x):
    first = F.dropout(torch.tanh(x) + 1, 0.3)
    second = F.dropout(first * 2, 0.5)
    return first, second, torch.rand(5, device=x.device)


def state():
    return torch.cuda.get_rng_state()


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_numbers_and_state_are_eagers(sizes, dtype, mode):
    x = torch.randn(sizes, device="cuda", dtype=dtype)
    compiled = graphlift.compile(several, fullgraph=True, mode=mode)
    for seed in (1, 2, 2, 3, 3):
        torch.manual_seed(seed)
        torch.rand(7, device="cuda")
        before = state()
        expected, after = several(x), state()
        torch.cuda.set_rng_state(before)
        got = compiled(x)
        assert torch.equal(state(), after)
        for a, b in zip(expected, got, strict=True):
            assert torch.equal(a == 0, b == 0)
            torch.testing.assert_close(a, b)


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_use_the_same_mask(dtype):
    x = torch.randn(777, 512, device="cuda", dtype=dtype, requires_grad=True)

    def function(x):
        return F.dropout(x.sin() * 2, 0.25)

    compiled = graphlift.compile(function, fullgraph=True)
    for seed in range(3):
        results = []
        for how in (function, compiled):
            torch.manual_seed(seed)
            y = how(x)
            results.append((y.detach(), *torch.autograd.grad(y.float().square().sum(), [x])))
        for a, b in zip(*results, strict=True):
            assert torch.equal(a == 0, b == 0)
            torch.testing.assert_close(a, b)


@pytest.mark.gpu
@on_gpu
def test_in_a_recording_of_the_programs_own():
    x = torch.randn(4096, 256, device="cuda")
    compiled = graphlift.compile(several, fullgraph=True)
    compiled(x)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        compiled(x)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = compiled(x)
    for seed in range(3):
        torch.manual_seed(seed)
        expected, after = several(x), state()
        torch.manual_seed(seed)
        graph.replay()
        assert torch.equal(state(), after)
        for a, b in zip(expected, got, strict=True):
            assert torch.equal(a == 0, b == 0)


@pytest.mark.gpu
@on_gpu
def test_a_draw_is_part_of_a_kernel():
    x = torch.randn(4096, 1024, device="cuda")
    compiled = graphlift.compile(lambda x: F.dropout(x * 2 + 1, 0.5) * 3, fullgraph=True)
    compiled(x)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        compiled(x)
        torch.cuda.synchronize()
    names = [event.name for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    assert len(names) == 1 and names[0].startswith("gl_"), names
