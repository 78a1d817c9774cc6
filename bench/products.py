"""Products of matrices on a GPU with what stands behind them: eager, by cuBLASLt's heuristics, and as measured.

usage: python bench/products.py [--dtype bfloat16 float32] [--tf32]
"""

import argparse
import time

import torch
from torch.nn import functional as F

import graphlift

SIZES = [
    (64, 768, 768),
    (512, 768, 3072),
    (2048, 1024, 4096),
    (8192, 1024, 1024),
    (8192, 4096, 1024),
    (16384, 768, 2304),
]


def programs():
    """Name, function, and whether it has a residual."""
    yield "mm", lambda x, w, b, r: x @ w.t()
    yield "bias", lambda x, w, b, r: F.linear(x, w, b)
    yield "bias relu", lambda x, w, b, r: F.relu(F.linear(x, w, b))
    yield "bias gelu", lambda x, w, b, r: F.gelu(F.linear(x, w, b), approximate="tanh")
    yield "bias residual", lambda x, w, b, r: r + F.linear(x, w, b)
    yield "weight's gradient", lambda x, w, b, r: r.t() @ x


def microseconds(call, *inputs):
    """Device time of one call among many, and host time of one."""
    for _ in range(3):
        call(*inputs)
    torch.cuda.synchronize()
    best, host = float("inf"), float("inf")
    for _ in range(7):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        begun = time.perf_counter()
        for _ in range(20):
            call(*inputs)
        host = min(host, (time.perf_counter() - begun) / 20)
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) / 20)
    return 1e3 * best, 1e6 * host


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--dtype", nargs="*", default=["bfloat16", "float32"])
    arguments.add_argument("--tf32", action="store_true")
    chosen = arguments.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = chosen.tf32
    print("dtype | m x k x n | what | eager us | default us | measured us | eager host us | default host us")
    for dtype in (getattr(torch, name) for name in chosen.dtype):
        for m, k, n in SIZES:
            x, w, b, r = (torch.randn(*size, device="cuda", dtype=dtype) for size in ((m, k), (n, k), (n,), (m, n)))
            for name, function in programs():
                with torch.no_grad():
                    eager = microseconds(function, x, w, b, r)
                    default = microseconds(graphlift.compile(function), x, w, b, r)
                    measured = microseconds(graphlift.compile(function, mode="max-autotune-no-cudagraphs"), x, w, b, r)
                times = " | ".join(
                    f"{value:.1f}" for value in (eager[0], default[0], measured[0], eager[1], default[1])
                )
                print(f"{dtype} | {m}x{k}x{n} | {name} | {times}".removeprefix("torch."), flush=True)
    print("natives", graphlift.counters()["natives"], "ran", graphlift._C.library_products())


if __name__ == "__main__":
    main()
