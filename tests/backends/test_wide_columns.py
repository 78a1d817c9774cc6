"""Reductions over many rows: units of several vectors of columns, in whole and cut, in one phase and in several."""

import pytest
import torch
import torch.nn.functional as F
from closeness import close

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")

ROWS, COLUMNS = (127, 128, 300, 5000), (1, 17, 33, 64, 65, 130, 1000, 4097)


@pytest.fixture(autouse=True)
def kernels_of_the_same_numbers():
    torch.manual_seed(0)
    before = graphlift.counters()["kernels"]
    yield
    assert graphlift.counters()["kernels"] > before


def holds(function, *inputs, dynamic=False, **bounds):
    before = graphlift.counters()
    compiled = graphlift.compile(function, fullgraph=True, dynamic=dynamic)
    got, expected = compiled(*inputs), function(*inputs)
    after = graphlift.counters()
    assert after["kernels"] > before["kernels"] and after["externals"] == before["externals"]
    if bounds:
        torch.testing.assert_close(got, expected, **bounds)
    else:
        assert not close(list(expected), list(got))


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("columns", COLUMNS)
def test_sums_and_extremes(rows, columns):
    x, y = torch.randn(rows, columns), torch.randn(rows, columns)
    holds(lambda x, y: ((x * y).sum(0), x.amax(0), (x + y).amin(0), x.mean(0)), x, y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int8, torch.bool], ids=str
)
def test_types(dtype):
    for rows, columns in ((150, 70), (4000, 1030)):
        x = torch.randint(-1, 2, (rows, columns)).to(dtype)
        holds(lambda x: (x.sum(0), (x == 0).all(0), (x != 0).any(0)), x)


@pytest.mark.parametrize("rows, columns", [(128, 64), (200, 300), (3000, 65), (300, 9000), (20000, 100)])
def test_several_phases(rows, columns):
    x = torch.randn(rows, columns)
    holds(lambda x: (x.softmax(0), x.log_softmax(0)), x, rtol=1e-4, atol=1e-5)
    holds(lambda x: ((x - x.mean(0)) * torch.rsqrt(x.var(0) + 1e-5), x.std(0)), x, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels", [3, 64, 96, 257])
def test_batch_norm_with_channels_last(channels):
    def function(x, weight, bias, gradient):
        mean, variance = torch.zeros(channels), torch.ones(channels)
        y = F.batch_norm(x, mean, variance, weight, bias, training=True)
        return y.relu(), mean, variance, *torch.autograd.grad(y, (x, weight, bias), gradient)

    x, gradient = (torch.randn(4, channels, 24, 24).to(memory_format=torch.channels_last) for _ in range(2))
    weight, bias = torch.randn(channels, requires_grad=True), torch.randn(channels, requires_grad=True)
    got = graphlift.compile(function, dynamic=False)(x.requires_grad_(), weight, bias, gradient)
    torch.testing.assert_close(got, function(x, weight, bias, gradient), rtol=1e-3, atol=1e-3)


def test_gradients_of_parameters_of_a_layer_norm():
    for rows, columns in ((1000, 1024), (130, 4096), (700, 77)):
        x, weight, bias = torch.randn(rows, columns), torch.randn(columns), torch.randn(columns)
        inputs = [each.requires_grad_() for each in (x, weight, bias)]

        def function(x, weight, bias):
            return F.layer_norm(x, (x.shape[1],), weight, bias).sin().sum()

        expected = torch.autograd.grad(function(*inputs), inputs)
        got = torch.autograd.grad(graphlift.compile(function, dynamic=False)(*inputs), inputs)
        torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-3)


def test_sizes_that_vary():
    compiled = graphlift.compile(lambda x: (x.sum(0), x.amax(0) + x.mean(0)), fullgraph=True, dynamic=True)
    before = graphlift.counters()["graphs"]
    for rows, columns in ((2, 2), (3000, 40), (128, 5000), (5, 77), (1000, 1000)):
        x = torch.randn(rows, columns)
        torch.testing.assert_close(compiled(x), (x.sum(0), x.amax(0) + x.mean(0)), rtol=1e-4, atol=1e-4)
    assert graphlift.counters()["graphs"] == before + 1


def test_small_terms_of_a_large_sum_count():
    x = torch.full((200000, 70), 1e-4)
    x[0] = 1000
    torch.testing.assert_close(graphlift.compile(lambda x: x.sum(0))(x), x.double().sum(0).float(), rtol=2e-5, atol=0)


def test_the_number_of_threads_changes_no_bit():
    x, before = torch.randn(30000, 200), torch.get_num_threads()
    compiled, results = graphlift.compile(lambda x: (x.sum(0), x.softmax(0))), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(compiled(x))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))
