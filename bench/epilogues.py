"""Products and convolutions finished with the calls behind them, beside the same with kernels behind them.

    python bench/epilogues.py [part of a name]

Microseconds, the least of many alternating runs; "natives": calls of the backend's own with and without.
"""

import functools
import sys
import time

import models
import torch
import torch.nn.functional as F

import graphlift


def rows():
    """Name, function, inputs."""

    def linear(m, n, k, finish, bias=True):
        x, w, b, y = torch.randn(m, k), torch.randn(n, k), torch.randn(n), torch.randn(m, n)
        return lambda x, w, b, y: finish(F.linear(x, w, b if bias else None), y), (x, w, b, y)

    finishes = {
        "relu": lambda z, y: F.relu(z),
        "gelu": lambda z, y: F.gelu(z),
        "gelu tanh": lambda z, y: F.gelu(z, approximate="tanh"),
        "silu": lambda z, y: F.silu(z),
        "add": lambda z, y: z + y,
        "mul": lambda z, y: z * y,
        "scale": lambda z, y: z * 0.125,
    }
    for m, n, k in (
        (64, 4096, 1024),
        (64, 1024, 4096),
        (256, 1024, 256),
        (256, 256, 1024),
        (8, 32, 16),
        (2048, 768, 768),
    ):
        for name, finish in finishes.items():
            yield f"{m}x{n}x{k} {name}", *linear(m, n, k, finish)
    # Gradients of an input that several products read.
    for m, n, k in ((256, 256, 768), (64, 1024, 1024)):
        a, b, c, d = torch.randn(m, k), torch.randn(k, n), torch.randn(m, k), torch.randn(k, n)
        yield f"{m}x{n}x{k} sum of two products", lambda a, b, c, d: a @ b + c @ d, (a, b, c, d)
    q, k = torch.randn(16, 128, 32), torch.randn(16, 128, 32)
    yield "16 of 128x128x32 scale", lambda q, k: q @ k.transpose(1, 2) * 0.125, (q, k)
    x, w, y = torch.randn(8, 16, 32, 32), torch.randn(16, 16, 3, 3), torch.randn(8, 16, 32, 32)
    yield "convolution relu", lambda x, w, y: F.relu(F.conv2d(x, w, None, 1, 1)), (x, w, y)
    yield "convolution add", lambda x, w, y: F.conv2d(x, w, None, 1, 1) + y, (x, w, y)
    for name in models.WORKLOADS:
        module, inputs = models.make(name, small=True)
        yield f"{name}, inference", module.eval(), inputs


def least(functions, seconds=1.5):
    """Of each function, alternating."""
    best = [float("inf")] * len(functions)
    for function in functions:
        function(), function()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            best[i] = min(best[i], time.perf_counter() - start)
    return [1e6 * each for each in best]


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    print(f"{'':32} {'kernels':>10} {'finished':>10} {'ratio':>6}  kernels")
    with torch.no_grad():
        for name, function, inputs in rows():
            if wanted not in name:
                continue
            pair, kernels = [], []
            for skip in ("epilogues", ""):
                compiled = graphlift.compile(function, options={"skip_passes": skip})
                before = graphlift.counters()["kernels"]
                compiled(*inputs)
                kernels.append(graphlift.counters()["kernels"] - before)
                pair.append(functools.partial(compiled, *inputs))
            apart, finished = least(pair)
            print(f"{name:32} {apart:10.1f} {finished:10.1f} {finished / apart:6.2f}  {kernels[0]} -> {kernels[1]}")
            graphlift.reset()


if __name__ == "__main__":
    main()
