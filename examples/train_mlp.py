"""Trains a three-layer MLP with AdamW, compiled and in eager side by side, and compares losses and parameters.

    python examples/train_mlp.py [--steps N] [--amp] [--device cuda] [--width 4096]

Prints the capture report first. Exits non-zero when the two runs differ.
"""

import argparse
import copy
import sys
import time

import torch

import graphlift


def build(width):
    layers = [torch.nn.Linear(1024, width), torch.nn.GELU()]
    layers += [torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.Linear(width, 1024)]
    return torch.nn.Sequential(*layers)


def train(model, parameters, batches, arguments):
    """Losses and seconds of each step."""
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
    losses, seconds = [], []
    for x, y in batches:
        start = time.perf_counter()
        with torch.autocast(arguments.device, torch.bfloat16, enabled=arguments.amp):
            loss = torch.nn.functional.mse_loss(model(x).float(), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    return losses, seconds


def same_change(before, eager, compiled, tolerance):
    """Both runs moved each parameter alike: the difference is small beside the way gone."""
    same = True
    for name, start in before.items():
        way = (eager[name] - start).norm().item()
        apart = (eager[name] - compiled[name]).norm().item()
        if not apart <= tolerance * way:
            print(f"MISMATCH in {name}: moved by {way:.3g}, apart by {apart:.3g}")
            same = False
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--amp", action="store_true", help="autocast to bfloat16")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    model = build(arguments.width).to(arguments.device)
    twin = copy.deepcopy(model)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    shape = (arguments.batch, 1024)
    batches = [
        (torch.randn(shape, device=arguments.device), torch.randn(shape, device=arguments.device))
        for _ in range(arguments.steps)
    ]

    with torch.autocast(arguments.device, torch.bfloat16, enabled=arguments.amp):
        print(graphlift.explain(model)(batches[0][0]).summary(), "\n")
    compiled = graphlift.compile(model)
    losses, seconds = train(compiled, compiled.parameters(), batches, arguments)
    want, eager_seconds = train(twin, twin.parameters(), batches, arguments)

    print(f"{'step':>4} {'loss':>10} {'eager':>10} {'ms':>8} {'eager ms':>9}")
    for step, row in enumerate(zip(losses, want, seconds, eager_seconds, strict=True)):
        print(f"{step:4} {row[0]:10.6f} {row[1]:10.6f} {row[2] * 1e3:8.1f} {row[3] * 1e3:9.1f}")

    tolerance = 0.05 if arguments.amp else 0.01
    same = all(abs(a - b) <= tolerance / 10 * abs(b) for a, b in zip(losses, want, strict=True))
    same &= same_change(before, dict(twin.named_parameters()), dict(model.named_parameters()), tolerance)
    print("losses and parameters equal eager's" if same else "MISMATCH with eager")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
