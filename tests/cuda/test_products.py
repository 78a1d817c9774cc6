"""Products on a GPU: cuBLASLt's own calls give eager's results, in every form, policy and mode."""

import os
import re
import subprocess
import sys
from pathlib import Path

import kernel_corpus as corpus
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import graphlift
from graphlift import _C

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.usefixtures("exact_products"),
]


def products(call):
    """How many products the library ran in a call, and its result."""
    before = _C.library_products()
    result = call()
    return _C.library_products() - before, result


@pytest.mark.parametrize("name, check", list(corpus.products("cuda", "cuda")))
def test_products(name, check):
    before = corpus.runtime.library_products()
    assert check() is None
    assert (corpus.runtime.library_products() > before) == (not name.startswith("empty"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_large_products_with_all_that_stands_behind(dtype):
    torch.manual_seed(0)
    x, r = (torch.randn(512, 768, device="cuda", dtype=dtype) for _ in range(2))
    w1, b1 = torch.randn(3072, 768, device="cuda", dtype=dtype) / 28, torch.randn(3072, device="cuda", dtype=dtype)
    w2, b2 = torch.randn(768, 3072, device="cuda", dtype=dtype) / 55, torch.randn(768, device="cuda", dtype=dtype)

    def function(x, r, w1, b1, w2, b2):
        return r + F.linear(F.gelu(F.linear(x, w1, b1), approximate="tanh"), w2, b2)

    def both(call):
        leaves = [t.detach().requires_grad_() for t in (x, r, w1, b1, w2, b2)]
        y = call(*leaves)
        return [y.detach(), *torch.autograd.grad(y.float().square().mean(), leaves)]

    exact = [t.double() for t in both(lambda *t: function(*(i.double() for i in t)))]
    count, got = products(lambda: both(graphlift.compile(function)))
    assert count >= 6
    for i, (wanted, eager, ours) in enumerate(zip(exact, both(function), got, strict=True)):
        off, theirs = ((t.double() - wanted) / wanted.abs().max() for t in (ours, eager))
        # In the mean no worse; where one element is rounded the other way, by its last digit.
        mean, most = off.square().mean().sqrt(), theirs.square().mean().sqrt()
        assert mean <= 1.1 * most + 1e-7, f"result {i}: {mean} against eager's {most} in the mean"
        assert off.abs().max() <= 2.1 * theirs.abs().max() + 1e-6, f"result {i}: {off.abs().max()}"


def test_tf32_follows_torchs_setting_at_each_call():
    x, w = torch.randn(256, 256, device="cuda"), torch.randn(256, 256, device="cuda")
    exact = x.double() @ w.double()
    compiled = graphlift.compile(torch.mm)

    def error():
        return (compiled(x, w).double() - exact).abs().max().item()

    assert error() < 1e-3
    torch.backends.cuda.matmul.allow_tf32 = True
    assert 1e-3 < error() < 1e-1
    torch.backends.cuda.matmul.allow_tf32 = False
    assert error() < 1e-3
    assert graphlift.counters()["natives"] > 0


def test_tf32_by_the_newer_setting(monkeypatch):
    """Which torch's older one refuses to be read with."""
    x, w = torch.randn(256, 256, device="cuda"), torch.randn(256, 256, device="cuda")
    exact = x.double() @ w.double()
    compiled = graphlift.compile(torch.mm)
    before = torch.backends.cuda.matmul.fp32_precision
    try:
        torch.backends.cuda.matmul.fp32_precision = "tf32"
        count, y = products(lambda: compiled(x, w))
        assert count == 1 and (y.double() - exact).abs().max() > 1e-3
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
    assert (compiled(x, w).double() - exact).abs().max() < 1e-3


def test_deterministic_algorithms_are_left_to_torch(monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    try:
        x = torch.randn(32, 32, device="cuda")
        count, y = products(lambda: graphlift.compile(lambda x: torch.relu(x @ x))(x))
        assert count == 0 and torch.equal(y, torch.relu(x @ x))
    finally:
        torch.use_deterministic_algorithms(False)


def net():
    torch.manual_seed(0)
    return (
        nn.Sequential(nn.Linear(64, 256), nn.GELU(approximate="tanh"), nn.Linear(256, 64), nn.ReLU()).cuda().bfloat16()
    )


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune"])
def test_modes(mode):
    """Also recorded as CUDA graphs, where memory for the library's work is the recording's own."""
    model = net()
    compiled = graphlift.compile(model, mode=mode)
    replays = graphlift.counters()["replays"]
    with torch.no_grad():
        for i in range(8):
            x = torch.randn(48, 64, device="cuda", dtype=torch.bfloat16)
            count, y = products(lambda x=x: compiled(x))
            torch.testing.assert_close(y, model(x), rtol=3e-2, atol=3e-2)
            del y
            assert count >= 2 or i >= 2
    assert mode == "default" or graphlift.counters()["replays"] > replays


def test_the_programs_own_recording_and_streams():
    model = net()
    compiled = graphlift.compile(model)
    x = torch.randn(48, 64, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        compiled(x)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            y = compiled(x)
        torch.cuda.current_stream().wait_stream(stream)
        torch.testing.assert_close(y, model(x), rtol=3e-2, atol=3e-2)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = compiled(x)
        x.normal_()
        graph.replay()
        torch.testing.assert_close(y, model(x), rtol=3e-2, atol=3e-2)


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import build_folder
import torch, graphlift
from torch.nn import functional as F
x, w, b = (torch.randn(*size, device="cuda", dtype=torch.bfloat16) for size in ((512, 256), (1024, 256), (1024,)))
function = lambda x, w, b: F.gelu(F.linear(x, w, b), approximate="tanh")
got = graphlift.compile(function, mode="max-autotune")(x, w, b)
torch.testing.assert_close(got, function(x, w, b), rtol=3e-2, atol=3e-1)
print(graphlift._C.tunings())
"""


def test_what_was_measured_is_remembered(tmp_path):
    def run(logs=""):
        environment = dict(os.environ, GRAPHLIFT_CACHE_DIR=str(tmp_path), GRAPHLIFT_STRICT="1", GRAPHLIFT_LOGS=logs)
        command = [sys.executable, "-c", PROGRAM, str(Path(__file__).parent.parent)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        return int(done.stdout), done.stderr

    count, text = run("perf_hints")
    assert count >= 1 and re.search("measured (recorded )?product on", text)
    assert run()[0] == 0
