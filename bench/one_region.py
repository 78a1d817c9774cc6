"""Each workload, inference and training: is it one region, without a break, and equal to eager?

    python bench/one_region.py [--device cuda] [--small] [names...]

Prints a line for each and exits non-zero when one is not. Equal means: outputs, gradients and buffers of three calls
are within rounding of eager's; the largest difference, in parts of the largest value, is printed. A difference that
eager itself has from float64 does not count: sums that cancel are as wrong as their parts are large.
"""

import argparse
import copy
import sys

import models
import torch

import graphlift

CALLS = 3


def apart(got, want):
    """The largest difference, in parts of the largest value."""
    if want is None or got is None:
        return 0.0 if got is want else float("inf")
    scale = want.detach().abs().max().item() or 1.0
    return (got.detach().double() - want.detach().double()).abs().max().item() / scale


def excess(got, want, truth):
    """How far the result is off, beyond eager's own distance from float64."""
    if truth is None or not want.is_floating_point():
        return apart(got, want)
    scale = truth.detach().abs().max().item() or 1.0
    off, own = ((t.detach().double() - truth.detach().double()).abs().max().item() for t in (got, want))
    return max(0.0, off - 4 * own) / scale


def results(module, arguments, training):
    """Outputs, gradients and buffers of one call."""
    torch.manual_seed(1)
    if not training:
        with torch.no_grad():
            return [module(*arguments)]
    module.zero_grad()
    arguments = [a.clone().requires_grad_() if a.is_floating_point() else a for a in arguments]
    output = module(*arguments)
    output.float().pow(2).mean().backward()
    leaves = [*arguments, *module.parameters()]
    return [output, *(leaf.grad for leaf in leaves), *(b.clone() for b in module.buffers())]


def check(name, device="cpu", small=False, training=True, backend=None):
    """(regions, breaks, largest difference) of the workload. Backend "reference" is held to eager itself."""
    plain, arguments = models.make(name, device, small)
    plain.train(training)
    other = copy.deepcopy(plain)
    graphlift.reset()
    compiled = graphlift.compile(other, backend=backend)
    worst = 0.0
    exact = copy.deepcopy(plain).double()
    precise = [a.double() if a.is_floating_point() else a for a in arguments]
    for _ in range(CALLS):
        got, want = results(compiled, arguments, training), results(plain, arguments, training)
        truth = [None] * len(want) if backend == "reference" else results(exact, precise, training)
        worst = max([worst, *(excess(g, w, t) for g, w, t in zip(got, want, truth, strict=True))])
    counts = graphlift.counters()
    hits = counts["hits"] == CALLS - 1
    return counts["graphs"] if hits else 0, counts["graph_breaks"], worst


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=list(models.WORKLOADS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    tolerance = 1e-5 if options.device == "cpu" else 1e-3
    print(f"torch {torch.__version__}, {options.device}, {'small' if options.small else 'full'} sizes")
    failed = []
    for name in options.names:
        for training in (False, True):
            regions, breaks, worst = check(name, options.device, options.small, training)
            mode = "training" if training else "inference"
            print(f"{name:12} {mode:10} regions {regions}, breaks {breaks}, difference {worst:.1e}", flush=True)
            if regions != 1 or breaks or not worst <= tolerance:
                failed.append(f"{name} {mode}")
    print("failed: " + ", ".join(failed) if failed else "all are one region and equal eager")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
