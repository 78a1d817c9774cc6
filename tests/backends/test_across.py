"""Reductions across the rows of a kernel that reduces rows, too: what both read is read once."""

import pytest
import torch
import torch.nn.functional as F
from closeness import close

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(0)


def holds(function, *inputs, kernels=1, dynamic=False, rtol=1e-4, atol=1e-4):
    """The function's results are eager's, made by so many kernels."""
    before = graphlift.counters()
    got = graphlift.compile(function, fullgraph=True, dynamic=dynamic)(*inputs)
    after = graphlift.counters()
    assert after["kernels"] - before["kernels"] == kernels and after["externals"] == before["externals"]
    expected = function(*inputs)
    for one, other in zip(got, expected, strict=True):
        assert one.dtype == other.dtype and one.stride() == other.stride()
    torch.testing.assert_close(got, expected, rtol=rtol, atol=atol)
    return got


def layer_norm_backward(shape, normalized, dtype=torch.float32):
    gradient, x = torch.randn(shape, dtype=dtype), torch.randn(shape, dtype=dtype)
    weight = torch.randn(normalized, dtype=dtype)
    _, mean, deviation = aten.native_layer_norm(x, normalized, weight, weight, 1e-5)

    def backward(gradient, x, mean, deviation, weight):
        return aten.native_layer_norm_backward(
            gradient, x, normalized, mean, deviation, weight, weight, [True, True, True]
        )

    return backward, (gradient, x, mean, deviation, weight)


@pytest.mark.parametrize("rows", [128, 131, 300, 2049, 20000])
@pytest.mark.parametrize("columns", [3, 17, 32, 33, 100, 1000])
def test_layer_norm_backward(rows, columns):
    function, inputs = layer_norm_backward((rows, columns), [columns])
    holds(function, *inputs, atol=1e-3)


@pytest.mark.parametrize(
    "shape, normalized", [((4, 50, 3, 33), [3, 33]), ((2, 3, 40, 64), [64]), ((150, 9, 5), [9, 5])]
)
def test_more_dims(shape, normalized):
    function, inputs = layer_norm_backward(shape, normalized)
    holds(function, *inputs)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_short_floats(dtype):
    function, inputs = layer_norm_backward((200, 70), [70], dtype)
    got = graphlift.compile(function, fullgraph=True)(*inputs)
    exact = function(*(x.double() for x in inputs))
    for result, expected in zip(got, exact, strict=True):
        assert result.dtype == dtype
        torch.testing.assert_close(result.double(), expected, rtol=torch.finfo(dtype).eps, atol=1e-3)


def test_sums_are_exact_enough():
    rows = 200_000
    x = torch.rand(rows, 8) + 1
    got = holds(lambda x: (x - x.mean(-1, keepdim=True), x.sum(0)), x)[1]
    torch.testing.assert_close(got.double(), x.double().sum(0), rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int8, torch.bool], ids=str
)
@pytest.mark.parametrize("columns", [5, 70])
def test_kinds_and_types(dtype, columns):
    x = torch.randint(-1, 2, (300, columns)).to(dtype)
    holds(lambda x: (x.sum(1), x.sum(0)), x)
    holds(lambda x: ((x == 0).all(1), (x == 0).all(0), (x != 0).any(0)), x)
    if dtype != torch.bool:
        holds(lambda x: (x.amax(1), x.amax(0), x.amin(0)), x)


def test_of_a_result_and_columns_first():
    x, y = torch.randn(1000, 130), torch.randn(130)
    holds(lambda x, y: (d := (x * y).softmax(-1), d.sum(0), d.amax(0)), x, y)
    holds(lambda x: (x.sum(0), x - x.sum(1, keepdim=True)), x)
    holds(lambda x: (torch.cat([x.sum(0), x.amax(0)]), x.sum(1)), x)


def test_what_is_made_of_columns():
    x, old = torch.randn(1000, 130), torch.randn(130)
    holds(lambda x, old: (x.softmax(1), old + x.mean(0), (x.sum(0) * 2).to(torch.float64)), x, old)
    holds(lambda x, old: (old * x.mean(0).exp(), x.softmax(1)), x, old)


def test_what_reads_the_columns_waits():
    x = torch.randn(1000, 130)
    holds(lambda x: (x.softmax(1), x - x.mean(0)), x, kernels=2)
    holds(lambda x: (x.softmax(0), x.softmax(1)), x, kernels=2)


def test_apart():
    few, turned = torch.randn(100, 130), torch.randn(1000, 130).t().contiguous().t()
    for x in (few, turned):
        holds(lambda x: (x.sum(0), x - x.sum(1, keepdim=True)), x, kernels=2)


def test_nothing_at_all():
    def function(x):
        return x.sum(0), x - x.sum(1, keepdim=True)

    compiled = graphlift.compile(function, dynamic=True)
    for rows in (500, 200, 0, 1, 131):
        x = torch.randn(rows, 40)
        torch.testing.assert_close(compiled(x), function(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("columns", [48, 50])
def test_rows_that_vary(columns):
    before = graphlift.counters()
    model = torch.nn.LayerNorm(columns)

    def step(x, gradient):
        y = model(x)
        return torch.autograd.grad(y, (x, model.weight, model.bias), gradient)

    compiled = graphlift.compile(step, dynamic=True)
    for rows in (3, 130, 700, 5000, 16400):
        x, gradient = torch.randn(rows, columns, requires_grad=True), torch.randn(rows, columns)
        torch.testing.assert_close(compiled(x, gradient), step(x, gradient), rtol=1e-4, atol=1e-3)
    assert graphlift.counters()["graphs"] - before["graphs"] <= 2


@pytest.mark.parametrize("rows", [256, 5000])
def test_rms_norm_of_the_program(rows):
    weight = torch.randn(300, requires_grad=True)

    def step(x, weight, gradient):
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
        return torch.autograd.grad(y, (x, weight), gradient)

    x, gradient = torch.randn(rows, 300, requires_grad=True), torch.randn(rows, 300)
    got = graphlift.compile(step, fullgraph=True)(x, weight, gradient)
    assert not close(list(step(x, weight, gradient)), list(got)) or torch.allclose(got[1], step(x, weight, gradient)[1])
    torch.testing.assert_close(got, step(x, weight, gradient), rtol=1e-4, atol=1e-3)


def test_threads_change_nothing():
    function, inputs = layer_norm_backward((3000, 200), [200])
    compiled, threads, results = graphlift.compile(function), torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            results.append(compiled(*inputs))
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_model_with_norms_and_biases():
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 96), torch.nn.LayerNorm(96), torch.nn.GELU(), torch.nn.Linear(96, 64)
    )
    x = torch.randn(300, 64)

    def gradients(call):
        model.zero_grad()
        F.cross_entropy(call(x), torch.arange(300) % 64).backward()
        return [p.grad.clone() for p in model.parameters()]

    expected, got = gradients(model), gradients(graphlift.compile(model, fullgraph=True))
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
