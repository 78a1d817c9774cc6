"""What a hit costs: two tensors, a 64-layer MLP, beside eager and torch.compile(backend="eager"), in one run.

    python bench/overhead.py [--no-peer]

Prints microseconds per call (best of several batches) and the ratio to eager. The tensors are tiny: it is overhead. For
two tensors the same operator is also called from C++, when the module graphlift_runtime of a build with tests is on the
path: what a hit takes beyond it is graphlift's own.
"""

import argparse
import itertools
import time

import torch

import graphlift

try:
    from graphlift_runtime import nanoseconds_of_add
except ImportError:
    nanoseconds_of_add = None

BATCHES = 15


def best(function, arguments, count):
    """Microseconds per call, best batch."""
    figures = []
    for _ in range(BATCHES):
        times = itertools.repeat(None, count)
        begin = time.perf_counter()
        for _ in times:
            function(*arguments)
        figures.append((time.perf_counter() - begin) / count * 1e6)
    return min(figures)


def add(x, y):
    """Two tensors."""
    return x + y


def measure(name, target, arguments, count, peer):
    """Prints one row."""
    engines = {"eager": target, "graphlift": graphlift.compile(target)}
    if peer:
        engines["torch.compile(backend='eager')"] = torch.compile(target, backend="eager")
    with torch.no_grad():
        figures = {engine: best(function, arguments, count) for engine, function in engines.items()}
    row = [f"{engine} {figure:.2f} ({figure / figures['eager']:.2f})" for engine, figure in figures.items()]
    print(f"{name}: {' | '.join(row)}", flush=True)
    return figures["graphlift"]


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-peer", action="store_true", help="leave torch.compile out")
    options = parser.parse_args()
    torch.set_num_threads(1)
    a, b, x = torch.randn(4), torch.randn(4), torch.randn(2, 4)
    layers = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(64)])
    print(f"torch {torch.__version__}, one thread, microseconds per call (ratio to eager)")
    hit = measure("x + y", add, (a, b), 20000, not options.no_peer)
    if nanoseconds_of_add is not None:
        with torch.no_grad():
            direct = min(nanoseconds_of_add(a, b, 20000, True) for _ in range(BATCHES)) / 1e3
        print(f"x + y: at::add from C++ {direct:.2f}, a hit takes {hit - direct:.2f} more")
    measure("64 linear layers", layers, (x,), 200, not options.no_peer)
    counts = graphlift.counters()
    assert counts["graphs"] == 2 and counts["frameless_hits"] > 0, counts


if __name__ == "__main__":
    main()
