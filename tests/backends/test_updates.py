"""Optimizer steps: _foreach_ operators are recorded item by item, one kernel per tensor; tensors of many sizes share compiled code."""

import pytest
import torch
from closeness import close

import graphlift
from graphlift import _C, llvm

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")

SHAPES = [(300,), (301,), (17, 33), (1024,), (64, 65), (4097,), (5000,), (8, 8, 8), (7,), (), (0, 3)]


def adam(parameters, gradients, means, squares):
    torch._foreach_lerp_(means, gradients, 0.1)
    torch._foreach_mul_(squares, 0.999)
    torch._foreach_addcmul_(squares, gradients, gradients, 0.001)
    roots = torch._foreach_sqrt(squares)
    torch._foreach_add_(roots, 1e-8)
    torch._foreach_addcdiv_(parameters, means, roots, -1e-3)


def state(seed=0):
    torch.manual_seed(seed)
    parameters, gradients = ([torch.randn(shape) for shape in SHAPES] for _ in range(2))
    return parameters, gradients, [torch.zeros_like(p) for p in parameters], [torch.rand_like(p) for p in parameters]


@pytest.fixture
def texts(monkeypatch):
    """The texts of kernels that are compiled, nothing of them kept on disk."""
    seen, compile_text = [], llvm._object_code
    monkeypatch.setattr(llvm, "_object_code", lambda text: seen.append(text) or compile_text(text))
    monkeypatch.setattr(llvm.cache, "read", lambda *key: None)
    return seen


def test_foreach_updates_are_one_kernel_per_tensor():
    eager, got = state(), state()
    compiled = graphlift.compile(adam, dynamic=False)
    before = graphlift.counters()
    for _ in range(3):
        adam(*eager)
        compiled(*got)
    after = graphlift.counters()
    assert after["kernels"] - before["kernels"] == len(SHAPES)
    assert after["externals"] == before["externals"] and after["graphs"] == before["graphs"] + 1
    for expected, actual in zip(eager, got, strict=True):
        assert not close(expected, actual)


def test_tensors_of_many_sizes_share_code(texts):
    def function(tensors):
        return [torch.sigmoid(t * 1.25) - 0.625 * t for t in tensors]

    sizes = [256, 257, 300, 511, 512, 1000, 4096, 4097, 9000, 40000]
    tensors = [torch.randn(size) for size in sizes]
    got = graphlift.compile(function, dynamic=False)(tensors)
    assert not close(function(tensors), got)
    assert len(texts) == 2, "one for the first size, one for all others"


def test_other_strides_and_rows_keep_their_code(texts):
    def function(a, b, c):
        return torch.tanh(a[::2] * 0.375) + 1, torch.tanh(b * 0.375) + 1, torch.softmax(c, -1)

    inputs = torch.randn(1200), torch.randn(20, 30), torch.randn(20, 30)
    assert not close(list(function(*inputs)), list(graphlift.compile(function, dynamic=False)(*inputs)))
    assert len(texts) == 3


def test_torchs_own_optimizer():
    def train(compile):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(20, 40), torch.nn.ReLU(), torch.nn.Linear(40, 3))
        optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
        step = compile(optimizer.step)
        for _ in range(3):
            model(torch.randn(8, 20)).pow(2).sum().backward()
            step()
            optimizer.zero_grad()
        return [p.detach() for p in model.parameters()]

    expected, before = train(lambda f: f), graphlift.counters()
    assert not close(expected, train(graphlift.compile))
    after = graphlift.counters()
    assert after["graphs"] > before["graphs"] and after["kernels"] >= before["kernels"] + 4
    assert after["graph_breaks"] == before["graph_breaks"]
