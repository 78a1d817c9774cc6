"""Layers with and without `remember_weights`: linear ones of few rows, small convolutions. Microseconds, in turn.

usage: python bench/remembered_weights.py [threads]
"""

import sys
import time

import torch
from torch import nn

import graphlift

ROWS = (1, 4, 16, 64, 128)
LINEAR = ((256, 256), (1024, 1024), (1024, 4096), (4096, 4096))
CONVOLUTIONS = ((1, 16, 32, 16, 3), (1, 64, 14, 64, 3), (1, 256, 14, 256, 3), (1, 512, 7, 512, 3), (8, 64, 14, 64, 1))


def layers():
    """Name, module, input."""
    for inputs, outputs in LINEAR:
        for rows in ROWS:
            yield f"linear {rows}x{inputs}x{outputs}", nn.Linear(inputs, outputs), torch.randn(rows, inputs)
    for batch, channels, size, out, window in CONVOLUTIONS:
        module = nn.Conv2d(channels, out, window, padding=window // 2)
        yield (
            f"conv {batch}x{channels}x{size}x{size} to {out}, {window}x{window}",
            module,
            torch.randn(batch, channels, size, size),
        )


def best(calls, x, seconds=0.6):
    """The least time of each, one after another in turn."""
    least = [float("inf")] * len(calls)
    for call in calls:
        for _ in range(4):
            call(x)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for i, call in enumerate(calls):
            begun = time.perf_counter()
            for _ in range(4):
                call(x)
            least[i] = min(least[i], (time.perf_counter() - begun) / 4)
    return [1e6 * value for value in least]


def main():
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    print(f"{torch.get_num_threads()} threads\n\n| layer | eager | off | on | on/off |\n|---|---|---|---|---|")
    with torch.no_grad():
        for name, module, x in layers():
            calls = [module] + [
                graphlift.compile(module.forward, options={"remember_weights": on}, dynamic=False)
                for on in (False, True)
            ]
            eager, off, on = best(calls, x)
            print(f"| {name} | {eager:.0f} | {off:.0f} | {on:.0f} | {on / off:.2f} |", flush=True)
    print("copies used:", graphlift.counters()["remembered_weights"])


if __name__ == "__main__":
    main()
