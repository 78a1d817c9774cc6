"""What a hit costs: two tensors, a 64-layer MLP, beside eager and torch.compile(backend="eager"), in one run.

    python bench/overhead.py [--no-peer]

Prints microseconds per call (best of several batches) and the ratio to eager. The tensors are tiny: it is overhead.
"""

import argparse
import time

import torch

import graphlift


def best(call, count, batches=7):
    """Microseconds per call, best batch."""
    call()
    figures = []
    for _ in range(batches):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        figures.append((time.perf_counter() - begin) / count * 1e6)
    return min(figures)


def add(x, y):
    """Two tensors."""
    return x + y


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-peer", action="store_true", help="leave torch.compile out")
    options = parser.parse_args()
    torch.set_num_threads(1)
    a, b, x = torch.randn(4), torch.randn(4), torch.randn(2, 4)
    layers = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(64)])
    print(f"torch {torch.__version__}, one thread, microseconds per call")
    for name, target, args, count in (("x + y", add, (a, b), 20000), ("64 linear layers", layers, (x,), 200)):
        engines = {"eager": target, "graphlift": graphlift.compile(target)}
        if not options.no_peer:
            engines["torch.compile(backend='eager')"] = torch.compile(target, backend="eager")
        with torch.no_grad():
            figures = {engine: best(lambda f=f, args=args: f(*args), count) for engine, f in engines.items()}
        row = " | ".join(
            f"{engine} {figure:.2f} ({figure / figures['eager']:.2f})" for engine, figure in figures.items()
        )
        print(f"{name}: {row}")
    counts = graphlift.counters()
    assert counts["graphs"] == 2 and counts["frameless_hits"] > 0, counts


if __name__ == "__main__":
    main()
