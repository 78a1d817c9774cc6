"""Many small updates, as optimizers make them: microseconds per step, the least of many, and kernels.

    python bench/updates.py [--repeats 4]

Adam over tensors of ten sizes, in place: by _foreach_ operators, by a loop over tensors, and without writing in place.
"""

import argparse
import time

import torch

import graphlift

SIZES = (64, 128, 4096, 16, 64 * 64, 10, 640, 32, 32 * 32, 7)


def foreach(parameters, gradients, means, squares):
    torch._foreach_lerp_(means, gradients, 0.1)
    torch._foreach_mul_(squares, 0.999)
    torch._foreach_addcmul_(squares, gradients, gradients, 0.001)
    roots = torch._foreach_sqrt(squares)
    torch._foreach_add_(roots, 1e-8)
    torch._foreach_addcdiv_(parameters, means, roots, -1e-3)


def loop(parameters, gradients, means, squares):
    for p, g, m, v in zip(parameters, gradients, means, squares, strict=True):
        m.lerp_(g, 0.1)
        v.mul_(0.999).addcmul_(g, g, value=0.001)
        p.addcdiv_(m, v.sqrt() + 1e-8, value=-1e-3)


def functional(parameters, gradients, means, squares):
    means = torch._foreach_lerp(means, gradients, 0.1)
    squares = torch._foreach_addcmul(torch._foreach_mul(squares, 0.999), gradients, gradients, 0.001)
    roots = torch._foreach_add(torch._foreach_sqrt(squares), 1e-8)
    return torch._foreach_addcdiv(parameters, means, roots, -1e-3), means, squares


def least(function, *inputs):
    function(*inputs)
    times = []
    for _ in range(300):
        start = time.perf_counter()
        function(*inputs)
        times.append(time.perf_counter() - start)
    return min(times) * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=4, help="tensors of each size")
    sizes = SIZES * parser.parse_args().repeats
    print(f"{len(sizes)} tensors, {torch.get_num_threads()} threads")
    for step in (foreach, loop, functional):
        torch.manual_seed(0)
        parameters, gradients = ([torch.randn(size) for size in sizes] for _ in range(2))
        moments = [torch.zeros_like(p) for p in parameters], [torch.rand_like(p) for p in parameters]
        state = parameters, gradients, *moments
        compiled = graphlift.compile(step, dynamic=False)
        before = graphlift.counters()["kernels"]
        ours = least(compiled, *state)
        kernels = graphlift.counters()["kernels"] - before
        print(f"{step.__name__:12} eager {least(step, *state):8.1f}  graphlift {ours:8.1f}  {kernels} kernels")


if __name__ == "__main__":
    main()
