"""Sums of rows at places that a tensor holds, the CPU backend's own: values, bounds and types are eager's."""

import pytest
import torch
import torch.nn.functional as F

import graphlift
from graphlift import _C

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(0)


aten = torch.ops.aten


def counted(function, *args):
    graphlift.reset()
    before = graphlift.counters()["natives"]
    result = graphlift.compile(function, fullgraph=True, dynamic=False)(*args)
    return result, graphlift.counters()["natives"] - before


def holds(function, *args, natives=1):
    got, made = counted(function, *args)
    torch.testing.assert_close(got, function(*args))
    assert made == natives


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("place", [torch.int64, torch.int32], ids=str)
@pytest.mark.parametrize(
    "count, height, width", [(7, 5, 3), (1000, 13, 64), (3000, 2000, 40), (1, 1, 1), (0, 4, 2), (5, 3, 0)]
)
def test_forms(dtype, place, count, height, width):
    places, rows = torch.randint(0, height, (count,)).to(place), torch.randn(count, width, dtype=dtype)
    base = torch.randn(height, width, dtype=dtype)
    holds(lambda g, i: aten.embedding_dense_backward(g, i, height, -1, False), rows, places)
    holds(lambda g, i: aten.embedding_dense_backward(g, i, height, 0, False), rows, places)
    holds(lambda b, g, i: b.index_add(0, i, g), base, rows, places)
    if place == torch.int64:
        holds(lambda b, g, i: b.index_put((i,), g, accumulate=True), base, rows, places)
        holds(lambda b, g, i: b.index_put((i - height,), g, accumulate=True), base, rows, places)


def test_more_dims():
    places, base = torch.randint(0, 6, (4, 3)), torch.randn(6, 2, 5)
    holds(lambda b, g, i: b.index_put((i,), g, accumulate=True), base, torch.randn(4, 3, 2, 5), places)
    holds(lambda g, i: aten.embedding_dense_backward(g, i, 6, -1, False), torch.randn(4, 3, 8), places)


def test_what_stays_torchs():
    places, base, rows = torch.tensor([1, 0, 1]), torch.randn(3, 4), torch.randn(3, 4)
    holds(lambda b, g, i: b.index_add(0, i, g, alpha=2), base, rows, places, natives=0)
    holds(lambda b, g, i: b.t().index_add(1, i, g.t()), base, rows, places, natives=0)
    holds(lambda b, g, i: b.index_add(0, i, g), base, rows[:1].expand(3, 4), places, natives=0)
    holds(lambda b, g, i: b.index_put((i,), g), base, rows[:2], places[:2], natives=0)
    holds(lambda g, i: aten.embedding_dense_backward(g, i, 3, -1, True), rows, places, natives=0)
    holds(lambda b, g, i: b.index_add(0, i, g), base.bfloat16(), rows.bfloat16(), places, natives=0)


def test_gradients_of_an_embedding_and_of_an_index():
    weight, words = torch.randn(50, 16, requires_grad=True), torch.randint(0, 50, (4, 9))

    def loss(weight, words):
        return (F.embedding(words, weight, padding_idx=3).sin() * weight[words].cos()).sum()

    expected = torch.autograd.grad(loss(weight, words), weight)
    before = graphlift.counters()["natives"]
    result = graphlift.compile(loss, fullgraph=True, dynamic=False)(weight, words)
    torch.testing.assert_close(torch.autograd.grad(result, weight), expected)
    assert graphlift.counters()["natives"] == before + 2


def test_sizes_that_vary():
    compiled = graphlift.compile(lambda b, g, i: b.index_add(0, i, g), fullgraph=True, dynamic=True)
    for count, height, width in ((3, 4, 5), (100, 7, 2), (9, 300, 33)):
        args = torch.randn(height, width), torch.randn(count, width), torch.randint(0, height, (count,))
        torch.testing.assert_close(compiled(*args), args[0].index_add(0, args[2], args[1]))


@pytest.mark.parametrize("place", [4, -1, -5])
@pytest.mark.parametrize("put", [False, True])
def test_places_out_of_range(put, place):
    def function(b, g, i):
        noise = torch.rand(2)
        return (b.index_put((i,), g, accumulate=True) if put else b.index_add(0, i, g)), noise

    args = torch.randn(4, 3), torch.randn(2, 3), torch.tensor([1, place])
    compiled = graphlift.compile(function, fullgraph=True)
    compiled(*args[:2], torch.tensor([0, 3]))
    try:
        expected = function(*args)[0]
    except Exception as error:  # noqa: BLE001
        with pytest.raises(type(error)) as caught:
            compiled(*args)
        assert "out of" in str(caught.value)
    else:
        torch.testing.assert_close(compiled(*args)[0], expected)


def test_threads_change_nothing():
    base, rows, places = torch.randn(999, 70), torch.randn(5000, 70), torch.randint(0, 999, (5000,))
    compiled, threads, results = graphlift.compile(lambda b, g, i: b.index_add(0, i, g)), torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            results.append(compiled(base, rows, places))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])
