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


def microseconds(calls, *inputs):
    """Device time of one call among many, and host time of one, of each; one after another in turn."""
    best, host = [float("inf")] * len(calls), [float("inf")] * len(calls)
    for turn in range(12):
        for i, call in enumerate(calls):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize()
            start.record()
            begun = time.perf_counter()
            for _ in range(20 if turn else 3):
                call(*inputs)
            passed = (time.perf_counter() - begun) / 20
            end.record()
            torch.cuda.synchronize()
            if turn:
                host[i], best[i] = min(host[i], passed), min(best[i], start.elapsed_time(end) / 20)
    return [1e3 * value for value in best] + [1e6 * value for value in host]


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--dtype", nargs="*", default=["bfloat16", "float32"])
    arguments.add_argument("--tf32", action="store_true")
    chosen = arguments.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = chosen.tf32
    print("dtype | m x k x n | what | us of eager | default | measured | host us of eager | default | measured")
    for dtype in (getattr(torch, name) for name in chosen.dtype):
        for m, k, n in SIZES:
            x, w, b, r = (torch.randn(*size, device="cuda", dtype=dtype) for size in ((m, k), (n, k), (n,), (m, n)))
            for name, function in programs():
                modes = ("default", "max-autotune-no-cudagraphs")
                calls = [function, *(graphlift.compile(function, mode=mode) for mode in modes)]
                with torch.no_grad():
                    times = " | ".join(f"{value:.1f}" for value in microseconds(calls, x, w, b, r))
                print(f"{dtype} | {m}x{k}x{n} | {name} | {times}".removeprefix("torch."), flush=True)
    print("natives", graphlift.counters()["natives"], "ran", graphlift._C.library_products())


if __name__ == "__main__":
    main()
