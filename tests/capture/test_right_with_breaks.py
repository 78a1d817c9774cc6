"""Programs that break a graph: right all the same."""

import copy
import functools
import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from judging import check

import graphlift

TESTS = str(pathlib.Path(__file__).parent.parent)


def first(k):
    return (torch.linspace(-1, 1, 6).reshape(2, 3) + k,)


@functools.singledispatch
def dispatched(a):
    return 1


@dispatched.register
def _(a: torch.Tensor):
    return a * 3


def copies_of_tensors(x):
    y = x * 2
    z = copy.deepcopy([y, y])
    z[0].add_(1)
    return y, z[0], z[0] is z[1]


class Adding(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        return result + 1 if function is torch.sin else result


def function_modes(x):
    with Adding():
        y = torch.sin(x)
    return y, torch.sin(x)


def subclasses_of_tensor(x):
    class Other(torch.Tensor):
        pass

    return (x.as_subclass(Other) * 2).as_subclass(torch.Tensor) + 1


def sparse_tensors(x):
    return x.to_sparse() @ x.t(), torch.sparse_coo_tensor([[0], [1]], [3.0], (2, 2)).to_dense() + 1


def nested_tensors(x):
    return torch.nested.nested_tensor([x, x * 2], layout=torch.jagged).to_padded_tensor(0.0) + 1


RIGHT = {
    "singledispatch": lambda x: dispatched(x) + dispatched(2),
    "deepcopy of tensors": copies_of_tensors,
    "function modes": function_modes,
    "subclasses": subclasses_of_tensor,
    "sparse": sparse_tensors,
    "nested": nested_tensors,
    "a numpy round trip": lambda x: torch.from_numpy(np.cumsum((x * 2).numpy(), 0)) + 1,
    "generators of the system's": lambda x: x + torch.Generator().seed() * 0 + 1,
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.filterwarnings("ignore")
def test_right_with_breaks(name):
    counts = check(RIGHT[name], first)
    assert counts["graph_breaks"] >= 1


def test_numbers_too_large_to_be_symbols():
    check(lambda x, n: x + n % 7, lambda k: (torch.ones(2), 2**62 + k % 2 * 5), graphs=2, breaks=0)
    check(lambda x, n: x + n % 7, lambda k: (torch.ones(2), -(2**62) - k % 2 * 5), graphs=2, breaks=0)


@pytest.mark.parametrize("name", ["RAdam", "ASGD", "NAdam", "Adamax", "Adadelta", "Rprop", "Adafactor"])
@pytest.mark.parametrize("foreach", [False, True])
def test_steps_of_optimizers_that_read_numbers(name, foreach):
    """What reads a step counter breaks in the middle of the optimizer: the state must be eager's all the same."""

    def run(wrap):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
        optimizer = getattr(torch.optim, name)(net.parameters(), lr=0.01, foreach=foreach)

        def step(x):
            optimizer.zero_grad()
            loss = net(x).pow(2).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        step = wrap(step)
        losses = [step(torch.linspace(-1, 1, 20).reshape(5, 4) * (k + 1)) for k in range(8)]
        state = [value for row in optimizer.state_dict()["state"].values() for value in row.values()]
        return losses, [p.detach() for p in net.parameters()], state

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", graphlift.GraphliftWarning)
        torch.testing.assert_close(run(graphlift.compile), run(lambda f: f))
    assert graphlift.counters()["internal_errors"] == 0 and graphlift.graph_count() >= 1


# In a process of its own: torch's compiler, which torch.cond starts, changes torch's optimizers for good.
CONDITIONS = """
import torch, graphlift
from torch._higher_order_ops import while_loop

def either(x):
    return torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x * 2,)) + 1

def again(x):
    return while_loop(lambda a, i: i < 3, lambda a, i: (a * 2, i + 1), (x * 2, torch.tensor(0)))[0] + 1

for program in (either, again):
    compiled = graphlift.compile(program)
    for k in range(4):
        x = torch.ones(3) * (k - 1.5)
        torch.testing.assert_close(compiled(x), program(x))
assert graphlift.graph_count() >= 2 and graphlift.counters()["internal_errors"] == 0
"""


def test_conditions_on_tensors():
    run = [sys.executable, "-c", f"import sys; sys.path.insert(0, {TESTS!r}); import build_folder\n{CONDITIONS}"]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
