"""Optimizer steps: _foreach_ operators are recorded item by item, one kernel per tensor; kernels of many sizes run as one call."""

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
    seen, compile_texts = [], llvm.compile
    monkeypatch.setattr(llvm, "compile", lambda names, texts: seen.extend(texts) or compile_texts(names, texts))
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


@pytest.mark.parametrize("skip, codes", [("", 1), ("horizontal_fusion", 2)])
def test_tensors_of_many_sizes_share_code(texts, skip, codes):
    def function(tensors):
        return [torch.sigmoid(t * (1.25 + codes)) - 0.625 * t for t in tensors]

    sizes = [256, 257, 300, 511, 512, 1000, 4096, 4097, 9000, 40000]
    tensors = [torch.randn(size) for size in sizes]
    got = graphlift.compile(function, dynamic=False, options={"skip_passes": skip})(tensors)
    assert not close(function(tensors), got)
    assert len(texts) == codes, "one for all; in calls of their own one for the first size, one for all others"


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


def made(function, *inputs, **options):
    """Calls of many kernels, and kernels, that a run makes."""
    before = graphlift.counters()
    graphlift.compile(function, fullgraph=True, dynamic=False, **options)(*inputs)
    after = graphlift.counters()
    assert after["graphs"] == before["graphs"] + 1
    return after["multi_kernels"] - before["multi_kernels"], after["kernels"] - before["kernels"]


def test_updates_run_as_one_call():
    assert made(adam, *state()) == (1, len(SHAPES))
    assert made(adam, *state(), options={"skip_passes": "horizontal_fusion"}) == (0, len(SHAPES))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64], ids=str)
def test_parts_of_any_length_on_any_number_of_threads(dtype, threads):
    def function(tensors, numbers):
        return [(x * 3 + y).relu() for x, y in zip(tensors, numbers, strict=True)]

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        sizes = [2, 3, 4095, 4096, 4097, 5, 100000, 1, 0, 8192, 63, 64, 65, 12289, 7, 262144, 262145]
        tensors = [torch.randint(-9, 9, (size,)).to(dtype) for size in sizes]
        numbers = [torch.tensor(i).to(dtype) for i in range(len(sizes))]
        assert not close(function(tensors, numbers), graphlift.compile(function, dynamic=False)(tensors, numbers))
        assert made(function, tensors, numbers) == (1, len(sizes))
    finally:
        torch.set_num_threads(before)


def test_what_is_read_is_not_written_over_before():
    """The updates of a, b and c are the same program, and each reads what the next one writes."""

    def function(a, b, c, others):
        for _ in range(2):
            b.add_(a.flip(0))
            a.add_(c)
            c.add_(b)
            for other in others:
                other.add_(c)

    def inputs():
        torch.manual_seed(0)
        return *(torch.randn(64) for _ in range(3)), [torch.randn(64) for _ in range(5)]

    for how in ({}, {"options": {"skip_passes": "fusion"}}):
        eager, got = inputs(), inputs()
        function(*eager)
        graphlift.compile(function, dynamic=False, **how)(*got)
        assert not close([*eager[:3], *eager[3]], [*got[:3], *got[3]])
    assert made(function, *inputs(), options={"skip_passes": "fusion"})[0] > 0


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam"])
@pytest.mark.parametrize("foreach", [False, True])
def test_optimizers_of_many_parameters(name, foreach):
    options = {"lr": 0.01, "foreach": foreach} | ({"momentum": 0.9, "nesterov": True} if name == "SGD" else {})

    def train(wrap):
        torch.manual_seed(0)
        parameters = [torch.randn(shape, requires_grad=True) for shape in SHAPES * 2]
        optimizer = getattr(torch.optim, name)(parameters, **options)
        step = wrap(optimizer.step)
        for _ in range(4):
            for parameter in parameters:
                parameter.grad = torch.randn_like(parameter)
            step()
        states = [optimizer.state[p] for p in parameters]
        return [p.detach() for p in parameters] + [
            t for state in states for t in state.values() if isinstance(t, torch.Tensor)
        ]

    expected, before = train(lambda f: f), graphlift.counters()
    assert not close(expected, train(graphlift.compile))
    after = graphlift.counters()
    assert after["multi_kernels"] > before["multi_kernels"] and after["kernels"] - before["kernels"] >= len(SHAPES)
    assert after["graph_breaks"] == before["graph_breaks"]


def test_last_elements_of_tensors_whose_size_varies():
    """Small kernels of one program, each of which reads at a place that depends on a size."""

    def function(x, y):
        return (x + y).sum(), x[-1].exp(), y[-1].exp(), x.flip(0)[:3].tanh(), y.flip(0)[:3].tanh()

    before = graphlift.counters()
    compiled = graphlift.compile(function, fullgraph=True, dynamic=True)
    for size in (9, 5, 300):
        inputs = torch.randn(size), torch.randn(size)
        assert not close(list(function(*inputs)), list(compiled(*inputs)))
    after = graphlift.counters()
    assert after["graphs"] == before["graphs"] + 1 and after["kernels"] >= before["kernels"] + 3


@pytest.mark.parametrize("lengths", [(300, 400, 500), (5, 7, 9)])
def test_gathered_elements_that_lie_a_varying_size_apart(lengths):
    def function(x, places):
        return [x[:, 3][each] * 2.75 for each in places]

    places = [torch.arange(length) % 10 for length in lengths]
    compiled, kernels = graphlift.compile(function, fullgraph=True), graphlift.counters()["kernels"]
    for size in (7, 9, 13):
        x = torch.randn(10, size)
        assert not close(function(x, places), compiled(x, places))
    assert graphlift.counters()["kernels"] >= kernels + len(lengths)
