"""What `make valgrind` runs beside the C++ tests: captures with backward, several sizes, effects, breaks and a reset."""

import gc

import build_folder  # noqa: F401
import torch

import graphlift


class Net(torch.nn.Module):
    """A network with a buffer that is changed, a reduction and a product."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 3)

    def forward(self, x):
        return self.second(torch.nn.functional.gelu(self.norm(self.first(x)))).softmax(-1)


def branch(x, items, table):
    """Changes the caller's containers and breaks at a branch and at a number."""
    items.append(x * 2)
    table["n"] = len(items)
    y = x + 1 if x.sum() > 0 else x - 1
    return y * float(y[0, 0]), items


def train(backend):
    """A few steps; the batch size varies."""
    net = Net()
    optimizer, compiled = torch.optim.SGD(net.parameters(), 0.1), graphlift.compile(net, backend=backend)
    for step in range(3):
        loss = compiled(torch.randn(5 + step, 4)).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


torch.set_num_threads(1)
for name in ("reference", "native"):
    train(name)
    function = graphlift.compile(branch, backend=name)
    for _ in range(3):
        function(torch.randn(2, 2), [], {})
    assert graphlift.graph_count() >= 4 and graphlift.counters()["hits"] >= 2, graphlift.counters()
    graphlift.reset()
gc.collect()
