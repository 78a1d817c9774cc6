"""Many small updates, as optimizers make them: microseconds per step, the least of many, and kernels.

    python bench/updates.py [--repeats 4] [--device cuda]

Adam over tensors of ten sizes, in place: by _foreach_ operators, by a loop over tensors, and without writing in place.
Then torch.optim.Adam: its fused and its foreach step in eager, and the plain step of single tensors compiled, without
horizontal fusion (a call per kernel) and with it.
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


def least(function, *inputs, count=300):
    for _ in range(3):  # a float that changed is an input from the next call on
        function(*inputs)
    times = []
    wait = torch.cuda.synchronize if torch.cuda.is_initialized() else lambda: None
    for _ in range(count):
        wait()
        start = time.perf_counter()
        function(*inputs)
        wait()
        times.append(time.perf_counter() - start)
    return min(times) * 1e6


def optimizers(device):
    layers = (128 * 128, 128) * 60
    for what, sizes in (
        ("40 small", SIZES * 4),
        ("60 layers", layers),
        ("30 of 64 Ki", (65536,) * 30),
        ("4 of 4 Mi", (1 << 22,) * 4),
    ):
        row = []
        apart = {"options": {"skip_passes": "horizontal_fusion"}}
        for how, compiled in (
            ({"foreach": True}, None),
            ({"fused": True}, None),
            ({"foreach": False}, apart),
            ({"foreach": False}, {}),
        ):
            torch.manual_seed(0)
            parameters = [torch.randn(size, device=device, requires_grad=True) for size in sizes]
            for parameter in parameters:
                parameter.grad = torch.randn_like(parameter)
            step = torch.optim.Adam(parameters, **how).step
            step()  # which makes the states
            count = 200 if max(sizes) < 10**6 else 20
            row.append(least(step if compiled is None else graphlift.compile(step, **compiled), count=count))
        words = "eager foreach {:9.0f}  eager fused {:9.0f}  graphlift, a call per kernel {:9.0f}  graphlift {:9.0f}"
        print(f"Adam, {what:12}", words.format(*row))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=4, help="tensors of each size")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    sizes = SIZES * options.repeats
    print(f"{len(sizes)} tensors, {torch.get_num_threads()} threads")
    for step in (foreach, loop, functional):
        torch.manual_seed(0)
        parameters, gradients = ([torch.randn(size, device=options.device) for size in sizes] for _ in range(2))
        moments = [torch.zeros_like(p) for p in parameters], [torch.rand_like(p) for p in parameters]
        state = parameters, gradients, *moments
        compiled = graphlift.compile(step, dynamic=False)
        before = graphlift.counters()["kernels"]
        ours = least(compiled, *state)
        kernels = graphlift.counters()["kernels"] - before
        print(f"{step.__name__:12} eager {least(step, *state):8.1f}  graphlift {ours:8.1f}  {kernels} kernels")
    optimizers(options.device)


if __name__ == "__main__":
    main()
