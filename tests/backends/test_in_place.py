"""Results that regions write into tensors of the program: values, versions and aliases are eager's."""

import copy
import logging

import pytest
import torch

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(0)


def swap(x, y):
    kept = x.clone()
    x.copy_(y)
    y.copy_(kept)


def returns_the_old(x, y):
    old = x * 1
    x.add_(y)
    return old, x


def returns_a_view(x, y):
    view = x[1:]
    x.mul_(y).add_(1)
    return view


def twins(x, y):
    x.copy_(y * 2)
    return x.clone()


def moment(x, y):
    x.lerp_(y, 0.1)
    y.addcdiv_(x, x.abs() + 1).clamp_(-1, 1)
    return (x * y).sum()


def normed(x, y):
    x.sub_(x.mean(0)).div_(y.abs().sum() + 1)


def reads_turned(x, y):
    x.add_(y.t())
    y.mul_(x.t() + 1)


def in_a_part(x, y):
    x[:2].mul_(3)
    y[:, 1] = x[:, 2]


def filled(x, y):
    x.fill_(3)
    y.zero_().add_(x)


def accumulates(x, y):
    for _ in range(3):
        x += y
        y += x.sin()


def shown(x, y):
    x.add_(1)
    kept = [x.clone()]
    x.add_(y)
    return kept


PROGRAMS = (
    swap,
    returns_the_old,
    returns_a_view,
    twins,
    moment,
    normed,
    reads_turned,
    in_a_part,
    filled,
    accumulates,
    shown,
)
LAYOUTS = {
    "plain": lambda: torch.randn(4, 4),
    "turned": lambda: torch.randn(4, 4).t(),
    "part": lambda: torch.randn(6, 9)[1:5, 2:6],
    "large": lambda: torch.randn(300, 300),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dynamic", [False, True])
def test_programs(program, layout, dynamic):
    graphlift.reset()
    compiled = graphlift.compile(program, fullgraph=True, dynamic=dynamic)
    kernels = graphlift.counters()["kernels"]
    for _ in range(3):
        mine = LAYOUTS[layout](), LAYOUTS[layout]()
        theirs = copy.deepcopy(mine)
        places = [t.data_ptr() for t in mine]
        versions = [[t._version for t in pair] for pair in (mine, theirs)]
        expected, got = program(*theirs), compiled(*mine)
        torch.testing.assert_close((mine, got), (theirs, expected))
        assert [t.data_ptr() for t in mine] == places
        changed = [
            [t._version > before for t, before in zip(pair, was, strict=True)]
            for pair, was in zip((mine, theirs), versions, strict=True)
        ]
        assert changed[0] == changed[1]
    assert graphlift.counters()["kernels"] > kernels


def test_the_kernel_writes_there_itself(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("graphlift"), "propagate", True)

    def buffers(program):
        caplog.clear()
        graphlift.compile(program)(torch.randn(4, 4), torch.randn(4, 4))
        return [line for line in caplog.text.splitlines() if line.startswith("buffers ")]

    graphlift.set_logs("output_code")
    try:
        with caplog.at_level(logging.DEBUG):
            assert buffers(lambda x, y: x.mul_(y).add_(1)) == ["buffers f32w f32"]
            assert buffers(lambda x, y: x.mul(y).add(1)) == ["buffers f32 f32 f32w"]
            assert buffers(lambda x, y: x.add_(y.t())) == ["buffers f32w f32"]
            assert buffers(lambda x, y: y.copy_(x * y.t())) == ["buffers f32 f32 f32w"]  # read at other places
    finally:
        graphlift.set_logs()


def test_parameters_that_a_graph_still_needs():
    weight, x = torch.randn(8, requires_grad=True), torch.randn(8)

    @graphlift.compile
    def update(weight, step):
        with torch.no_grad():
            weight.sub_(step)

    loss = (weight * weight * x).sum()
    update(weight, torch.ones(8))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_inference_mode():
    with torch.inference_mode():
        x = torch.randn(8)
        expected = x + 1
        graphlift.compile(lambda x: x.add_(1))(x)
    assert torch.equal(x, expected)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        graphlift.compile(lambda x: x.add_(1))(x)


@pytest.mark.parametrize("foreach", [False, True])
def test_an_optimizer(foreach):
    parameters = [torch.randn(300_000).requires_grad_() for _ in range(2)]
    twins = [p.detach().clone().requires_grad_() for p in parameters]
    ours, eager = (torch.optim.AdamW(ps, lr=0.01, foreach=foreach) for ps in (parameters, twins))
    step = graphlift.compile(ours.step)
    for _ in range(5):
        for p, q in zip(parameters, twins, strict=True):
            p.grad = torch.randn_like(p)
            q.grad = p.grad.clone()
        step()
        eager.step()
    torch.testing.assert_close(parameters, twins)
    for p, q in zip(parameters, twins, strict=True):
        torch.testing.assert_close(ours.state[p]["exp_avg_sq"], eager.state[q]["exp_avg_sq"])


@pytest.mark.parametrize("sizes", [[64], [64, 50], [300_000]])
def test_memory_that_is_shared_until_it_is_written_to(sizes):
    def update(tensors):
        for tensor in tensors:
            tensor.mul_(2)

    before = graphlift.counters()["kernels"]
    tensors = [torch.randn(size) for size in sizes]
    expected, lazy = [tensor.clone() for tensor in tensors], [torch._lazy_clone(tensor) for tensor in tensors]
    graphlift.compile(update, fullgraph=True, dynamic=False)(lazy)
    torch.testing.assert_close(tensors, expected, rtol=0, atol=0)
    torch.testing.assert_close(lazy, [2 * tensor for tensor in expected], rtol=0, atol=0)
    assert graphlift.counters()["kernels"] > before


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + (x.view(torch.int32).t() & 3),
        lambda x: x.view(torch.int32).t() & 3,
        lambda x: x.as_strided(x.shape, (1, x.shape[0])) + 1,
        lambda x: x + x.diagonal(),
    ],
)
@pytest.mark.parametrize("size", [8, 100])
def test_a_kernel_that_reads_another_view_of_what_it_writes(function, size):
    x, before = torch.randn(size, size), graphlift.counters()["kernels"]
    expected = function(x).float()
    graphlift.compile(lambda x: [x.copy_(function(x))], fullgraph=True, dynamic=False)(x)
    torch.testing.assert_close(x, expected, rtol=0, atol=0)
    assert graphlift.counters()["kernels"] > before
