"""Few long reductions are cut into pieces for threads: values are eager's, whatever the shape, type and number of phases."""

import pytest
import torch
import torch.nn.functional as F

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")

FUNCTIONS = {
    "sum": lambda x: x.sum(),
    "mean and a square": lambda x: (x * x).mean() + 1,
    "two sums": lambda x: (x.sum(), (x * x).sum()),
    "extremes": lambda x: (x.amax(), x.amin()),
    "logical": lambda x: ((x > 3).any(), (x < 9).all(), (x > -9).all()),
    "norm": lambda x: x / x.norm(),
    "softmax of all": lambda x: x.flatten().softmax(0),
    "standardized": lambda x: (x - x.mean()) / x.var(correction=0).sqrt(),
    "columns": lambda x: x.sum(0),
    "column norms": lambda x: F.normalize(x, dim=0),
    "rows": lambda x: x.sum(1),
    "row softmax": lambda x: x.softmax(1),
    "rows of a turned one": lambda x: x.t().sum(1),
    "loss": lambda x: F.mse_loss(x, x.flip(0)),
}
SHAPES = [(3, 100_001), (100_001, 3), (1, 65536), (40_000, 40), (300, 300), (2, 32768), (1, 32769), (5, 7), (50_000, 1)]


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(0)


def holds(function, x, got):
    """Beside eager in double: sums of many float32 numbers that cancel out have few right digits in any order."""
    exact = function(x.double())
    exact, got = (value if isinstance(value, tuple) else (value,) for value in (exact, got))
    for a, b in zip(exact, got, strict=True):
        if a.dtype == torch.bool:
            assert torch.equal(a, b)
        else:
            assert b.dtype == torch.float32
            torch.testing.assert_close(b.double(), a, rtol=2e-4, atol=5e-3 if (a.abs() > 20).any() else 1e-3)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name, shape):
    x = torch.randn(shape)
    graphlift.reset()
    before = graphlift.counters()["kernels"]
    holds(FUNCTIONS[name], x, graphlift.compile(FUNCTIONS[name], fullgraph=True, dynamic=False)(x))
    assert graphlift.counters()["kernels"] > before


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8], ids=str
)
def test_dtypes(dtype):
    x = torch.randint(0, 5, (3, 70_003)).to(dtype)
    for function in (
        lambda x: x.sum(),
        lambda x: x.sum(1),
        lambda x: x.t().sum(1),
        lambda x: (x.amax(), x.amin(1)),
        lambda x: (x > 4).any(1),
    ):
        before = graphlift.counters()["kernels"]
        got, expected = graphlift.compile(function, fullgraph=True)(x), function(x)
        torch.testing.assert_close(got, expected)
        assert graphlift.counters()["kernels"] > before


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sizes_that_vary(name):
    compiled = graphlift.compile(FUNCTIONS[name], fullgraph=True, dynamic=True)
    for shape in ((3, 5), (4, 70_000), (70_001, 2), (2, 3), (513, 129), (0, 4)):
        x = torch.randn(shape)
        if 0 in shape and name not in ("sum", "columns", "rows", "two sums"):
            continue
        holds(FUNCTIONS[name], x, compiled(x))


def test_strides_and_parts():
    base = torch.randn(70_000, 9)
    for x in (base[:, 2:5], base[::2], base.t()[1:3], base[:, 1], base[5:6].abs().expand(40_000, 9)):
        for function in (lambda x: x.sum(), lambda x: x.sum(0), lambda x: x.exp().mean(-1)):
            holds(function, x, graphlift.compile(function, fullgraph=True, dynamic=False)(x))


def test_threads_change_nothing():
    x, threads = torch.randn(3_000_001), torch.get_num_threads()
    compiled = graphlift.compile(lambda x: (x.sum(), (x - x.mean()).exp().sum()))
    results, before = [], graphlift.counters()["kernels"]
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            results.append(compiled(x))
    finally:
        torch.set_num_threads(threads)
    assert graphlift.counters()["kernels"] > before
    assert all(torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True))


def test_gradients():
    x, y = torch.randn(50_000, 4, requires_grad=True), torch.randn(50_000, 4)

    def loss(x):
        return F.smooth_l1_loss(x * x, y) + F.binary_cross_entropy_with_logits(x, y.sigmoid())

    (expected,) = torch.autograd.grad(loss(x), x)
    before = graphlift.counters()["kernels"]
    (got,) = torch.autograd.grad(graphlift.compile(loss, fullgraph=True)(x), x)
    torch.testing.assert_close(got, expected)
    assert graphlift.counters()["kernels"] > before


@pytest.mark.parametrize("width", [6, 40])
def test_a_reduction_of_what_was_broadcast_beside_it(width):
    """The sum is made once, not once per column of the work beside it."""

    def program(a, b):
        return a + b, a.sum(), a.sum(0), a.sum(0, True), a.sum(1), (a * 2).mean()

    a, b = torch.randn(40, 1), torch.randn(40, width)
    before = graphlift.counters()["graphs"]
    for got, expected in zip(graphlift.compile(program, fullgraph=True)(a, b), program(a, b), strict=True):
        torch.testing.assert_close(got, expected)
    assert graphlift.counters()["graphs"] == before + 1


def test_long_sums_are_as_exact_as_eagers():
    """Columns and rows of many small terms, and sums of everything: no further from the truth than eager's, twice."""

    def program(x):
        return x.sum(0), x.t().sum(1), x.sum(), x.mean(), (x * x).sum((0, 1)), x.reshape(64, -1, 24).sum((0, 1))

    torch.manual_seed(0)
    x = torch.rand(60000 // 64 * 64, 24) + 0.5
    got, expected, truth = graphlift.compile(program, fullgraph=True)(x), program(x), program(x.double())
    for ours, eager, exact in zip(got, expected, truth, strict=True):
        scale = exact.abs().max()
        off, own = ((value - exact).abs().max() / scale for value in (ours, eager))
        assert off <= max(2 * own, 2e-6), (off, own)
