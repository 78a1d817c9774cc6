"""A graph break and its cure: a branch on a tensor's value, and the same with torch.where.

    python examples/graph_breaks.py

Both are right; the first is compiled as two regions with a step in the real interpreter between them. The log says
where and why. Exits non-zero when a result differs from eager's, or when the cured function still breaks.
"""

import sys

import torch

import graphlift


def branching(x, limit):
    y = torch.tanh(x) * 2
    largest = y.abs().max().item()  # needs the number: a break
    if largest > limit:
        y = y * (limit / largest)
    return y + 1


def cured(x, limit):
    y = torch.tanh(x) * 2
    largest = y.abs().max()
    factor = torch.where(largest > limit, limit / largest, torch.ones_like(largest))
    return y * factor + 1


def same(function, compiled):
    inputs = [torch.linspace(-3, 3, 8), torch.linspace(-0.1, 0.1, 8)]
    return all(torch.allclose(compiled(x, 1.5), function(x, 1.5)) for x in inputs for _ in range(2))


def main():
    failures = []
    breaks = {}
    for function in (branching, cured):
        print(f"--- {function.__name__}", flush=True)
        graphlift.reset()
        graphlift.set_logs("graph_breaks")
        compiled = graphlift.compile(function)
        if not same(function, compiled):
            failures.append(f"{function.__name__} differs from eager")
        graphlift.set_logs()
        breaks[function.__name__] = sum(graphlift.counters()["graph_break"].values())
        print(f"regions: {graphlift.graph_count()}, graph breaks: {breaks[function.__name__]}", flush=True)

    print("--- fullgraph=True refuses the first one:")
    try:
        graphlift.compile(branching, fullgraph=True)(torch.ones(3), 1.5)
        failures.append("fullgraph=True let a break pass")
    except graphlift.GraphBreakError as error:
        print(error)
    if not same(cured, graphlift.compile(cured, fullgraph=True)):
        failures.append("the cured function differs from eager under fullgraph=True")
    if not torch.allclose(branching(torch.ones(3), 1.5), cured(torch.ones(3), 1.5)):
        failures.append("the cure is none")
    if breaks["branching"] == 0 or breaks["cured"] != 0:
        failures.append(f"unexpected breaks: {breaks}")
    print("\n".join(failures) or "all results equal eager's")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
