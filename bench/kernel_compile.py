"""How long kernels for CPU take to compile: those of models.py's workloads at small size, in inference and training.

    python bench/kernel_compile.py [--repeat 3]

Prints milliseconds per kernel, the least of the repeats, from LLVM's text to linked code, in wall time and in CPU time
of the one thread: each compiled by itself, and together, as the kernels of a graph are. Of that time a kernel's share
is as large as its own time by itself is of all of theirs. Kernels that an earlier graph had count there. Nothing is
kept on disk.
"""

import argparse
import os
import statistics
import sys
import time

os.environ["GRAPHLIFT_DISK_CACHE"] = "0"
import torch  # noqa: E402

import graphlift  # noqa: E402
from graphlift import llvm  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import models  # noqa: E402


def modules():
    """Names and texts of the kernels that each graph of the workloads compiles."""
    found = []
    compiled = llvm.compile

    def noting(names, texts):
        found.append((names, texts))
        return compiled(names, texts)

    llvm.compile = noting
    for workload in models.WORKLOADS:
        model, args = models.make(workload, "cpu", small=True)
        call = graphlift.compile(model)
        with torch.no_grad():
            call(*args)
        if list(model.parameters()):
            call(*args).square().mean().backward()
    llvm.compile = compiled
    return found


def milliseconds(names, texts, repeat):
    """Least wall time and least time of the CPU."""
    times = []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.thread_time()
        llvm.compile(names, texts)
        times.append((time.perf_counter() - wall, time.thread_time() - cpu))
    return [1e3 * min(column) for column in zip(*times, strict=True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    together, alone = [], []
    for names, texts in modules():
        whole = milliseconds(names, texts, repeat)
        own = [milliseconds([name], [text], repeat) for name, text in zip(names, texts, strict=True)]
        sums = [sum(column) for column in zip(*own, strict=True)]
        together += [[time * all_ / sum_ for time, all_, sum_ in zip(row, whole, sums, strict=True)] for row in own]
        alone += own
    print(f"{len(alone)} kernels; milliseconds each, median (9 in 10 below), sum:")
    for how, rows in (("together", together), ("alone", alone)):
        for what, times in zip(("wall", "CPU"), zip(*rows, strict=True), strict=True):
            ninth = statistics.quantiles(times, n=10)[-1]
            print(f"  {how:8} {what:4} {statistics.median(times):6.2f} ({ninth:.2f}) {sum(times):.0f}")


if __name__ == "__main__":
    main()
