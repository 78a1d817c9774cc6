"""Sizes that a guard made equal are one symbol in what is compiled: kernels and row sums are made of them as of constant ones."""

import pytest
import torch
import torch.nn.functional as F
from closeness import close

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(0)


def counts():
    return dict(graphlift.counters())


def made(before):
    now = graphlift.counters()
    return {name: now[name] - before[name] for name in ("graphs", "kernels", "natives", "externals")}


def run(function, inputs):
    """Results and gradients."""
    inputs = [each.detach().requires_grad_(each.is_floating_point()) for each in inputs]
    result = function(*inputs)
    result.sum().backward()
    return [result.detach(), *(each.grad for each in inputs if each.grad is not None)]


def rows(*shapes):
    return [torch.randn(shape) for shape in shapes]


# Functions, their inputs, and how many of their gradients are views of others, which are calls of torch's.
BINARY = [
    (lambda x, y: (x + y).relu() * 2, lambda n, m: rows((n, m), (n, m)), 0),
    (lambda x, y: torch.sigmoid(x) * y.t(), lambda n, m: rows((n, m), (m, n)), 1),
    (lambda x, y, z: F.layer_norm(x + y, x.shape[-1:]) * z, lambda n, m: rows((n, m), (n, m), (m,)), 1),
    (
        lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b) - x.detach().var(1, keepdim=True),
        lambda n, m: rows((n, m), (m,), (m,)),
        0,
    ),
    (lambda x, y: torch.where(x > 0, x, y).softmax(-1), lambda n, m: rows((n, m), (1, m)), 0),
    (lambda x, y: x.view(-1) * y, lambda n, m: rows((n, m), (n * m,)), 1),
    (lambda x, y, z: F.mse_loss(x * z, y) + x.detach().std(), lambda n, m: rows((n, m), (n, m), (n, 1)), 0),
]


@pytest.mark.parametrize("function, inputs, views", BINARY)
def test_operands_of_one_size(function, inputs, views):
    compiled = graphlift.compile(function, fullgraph=True, dynamic=True)
    before = counts()
    for n, m in ((4, 6), (5, 9), (33, 130), (3, 4)):
        given = inputs(n, m)
        assert not close(run(function, given), run(compiled, given))
    after = made(before)
    assert after["graphs"] == 1 and after["kernels"] > 0
    assert after["externals"] == views


def test_batches_of_any_size_through_a_batch_norm():
    def trained(wrap):
        torch.manual_seed(1)
        norm = torch.nn.BatchNorm1d(5)
        function, results = wrap(lambda x: torch.tanh(norm(x)) * x), []
        for batch in (4, 7, 300):
            x = torch.randn(batch, 5, requires_grad=True)
            function(x).pow(2).sum().backward()
            results.append(x.grad)
        return results + [each.clone() for each in norm.state_dict().values()] + [norm.weight.grad, norm.bias.grad]

    expected, before = trained(lambda f: f), counts()
    assert not close(expected, trained(lambda f: graphlift.compile(f, fullgraph=True, dynamic=True)))
    after = made(before)
    assert after["graphs"] == 1 and after["kernels"] > 0 and after["externals"] == 0


def test_rows_that_are_as_many_as_places():
    def function(base, rows, places):
        return base.index_add(0, places, rows)

    compiled = graphlift.compile(function, fullgraph=True, dynamic=True)
    before = counts()
    for height, count, width in ((6, 4, 3), (9, 50, 7), (100, 12, 31)):
        given = [*rows((height, width), (count, width)), torch.randint(0, height, (count,))]
        torch.testing.assert_close(compiled(*given), function(*given))
    after = made(before)
    assert after["graphs"] == 1 and after["natives"] == 1 and after["externals"] == 0


def test_a_program_that_says_what_is_equal():
    """A branch makes the guard; one side is a constant then."""

    def function(x, y):
        if x.shape[0] == y.shape[0] and y.shape[1] == 8:
            return torch.tanh(x) * y
        return torch.tanh(x) - y.sum()

    compiled = graphlift.compile(function, fullgraph=True, dynamic=True)
    before = counts()
    for first, second in (((5, 8), (5, 8)), ((7, 8), (7, 8)), ((5, 8), (6, 3)), ((9, 8), (9, 8))):
        given = rows(first, second)
        torch.testing.assert_close(compiled(*given), function(*given))
    assert made(before)["graphs"] == 2 and made(before)["externals"] == 0


def test_sizes_that_differ_are_another_graph_or_eagers_error():
    def function(x, y):
        return (x + y).relu() * 2

    compiled = graphlift.compile(function, fullgraph=True, dynamic=True)
    before = counts()
    for first, second in (((5, 7), (5, 7)), ((6, 7), (1, 7)), ((6, 7), (6, 1)), ((8, 7), (8, 7)), ((4, 3), (3,))):
        given = rows(first, second)
        torch.testing.assert_close(compiled(*given), function(*given))
    assert made(before)["graphs"] == 4 and made(before)["externals"] == 0
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        compiled(*rows((5, 7), (6, 7)))


def test_views_of_results_and_inputs_keep_their_geometry():
    def function(x, y):
        z = x + y
        x.mul_(2)
        return z, z.t(), x[1:], z.view(-1)

    compiled = graphlift.compile(function, fullgraph=True, dynamic=True)
    for n, m in ((4, 6), (9, 3)):
        expected, got = rows((n, m), (n, m)), None
        got = [each.clone() for each in expected]
        for one, other in zip(function(*expected), compiled(*got), strict=True):
            torch.testing.assert_close(other, one)
            assert other.stride() == one.stride() and other.storage_offset() == one.storage_offset()
        torch.testing.assert_close(got, expected)
