"""Trains a classifier of ten Linear+ReLU blocks on two-dimensional spirals with Adam, and compares it with eager.

    python examples/train_classifier.py [--steps N]

The whole epoch uses two batch sizes: the last batch is smaller. Exits non-zero when the two runs differ.
"""

import argparse
import copy
import sys

import torch

import graphlift


def spirals(count, classes=3):
    """Points on `classes` intertwined spirals, with their class."""
    label = torch.arange(count) % classes
    radius = torch.rand(count)
    angle = radius * 5 + label * (2 * torch.pi / classes) + torch.randn(count) * 0.1
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), label


class Classifier(torch.nn.Module):
    def __init__(self, width=64, blocks=10, classes=3):
        super().__init__()
        self.inlet = torch.nn.Linear(2, width)
        self.blocks = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU()) for _ in range(blocks)
        )
        self.outlet = torch.nn.Linear(width, classes)

    def forward(self, x):
        x = torch.relu(self.inlet(x))
        for block in self.blocks:
            x = x + block(x)
        return self.outlet(x)


def train(model, points, labels, steps):
    loss_function = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for step in range(steps):
        rows = slice(step % 4 * 100, min(step % 4 * 100 + 100, len(points)))
        optimizer.zero_grad()
        loss = loss_function(model(points[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=40)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    points, labels = spirals(350)
    model = Classifier()
    twin = copy.deepcopy(model)
    compiled = graphlift.compile(model)
    losses = train(compiled, points, labels, arguments.steps)
    want = train(twin, points, labels, arguments.steps)

    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}; eager {want[0]:.4f} -> {want[-1]:.4f}")
    print(f"regions compiled: {graphlift.graph_count()}, graph breaks: {graphlift.counters()['graph_break'] or 'none'}")
    same = torch.allclose(torch.tensor(losses), torch.tensor(want), rtol=1e-3, atol=1e-4)
    compiled.eval()
    twin.eval()
    with torch.no_grad():
        same &= torch.allclose(compiled(points), twin(points), rtol=1e-2, atol=1e-2)
        accuracy = (compiled(points).argmax(1) == labels).float().mean().item()
    print(f"accuracy {accuracy:.2f};", "equal to eager" if same else "MISMATCH with eager")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
