"""Reads at places from data in kernels: values and gradients are eager's, neighbours fuse, and places out of range are eager's errors."""

import logging

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


DTYPES = (
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
)


def table(*sizes, dtype=torch.float32):
    values = torch.randn(*sizes) if dtype.is_floating_point else torch.randint(0, 100, sizes)
    return values.to(dtype)


def counted(function, *args):
    """The result, kernels made, and calls left to torch."""
    graphlift.reset()
    before = graphlift.counters()
    result = graphlift.compile(function, fullgraph=True)(*args)
    after = graphlift.counters()
    return result, after["kernels"] - before["kernels"], after["externals"] - before["externals"]


def holds(function, *args, kernels=1, externals=0):
    got, made, left = counted(function, *args)
    different = close(function(*args), got)
    assert not different, different
    assert (made, left) == (kernels, externals)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("place", [torch.int64, torch.int32], ids=str)
def test_dtypes(dtype, place):
    weight, words = table(11, 20, dtype=dtype), torch.randint(0, 11, (3, 5)).to(place)
    holds(lambda w, i: F.embedding(i, w) * 2 if dtype != torch.bool else ~F.embedding(i, w), weight, words)
    holds(lambda w, i: torch.index_select(w, 1, i), weight, words[0])
    holds(lambda w, i: w[i, i[:, :1]], weight, words)
    if place == torch.int64:
        holds(lambda w, i: w.gather(0, i), weight, words)


@pytest.mark.parametrize("width", [1, 3, 16, 67, 5000])
@pytest.mark.parametrize("turned", [False, True])
def test_layouts(width, turned):
    weight = table(width, 9).t() if turned else table(9, width)
    words = torch.randint(0, 9, (6, 4)).t()
    holds(lambda w, i: F.embedding(i, w) + 1, weight, words)
    holds(lambda w, i: w[1:8].index_select(0, i) + 1, weight, words[0] % 7)
    holds(lambda w, i: w[:, ::2][i[1:]] + 1, weight, words)
    holds(lambda w, i: w[None].expand(3, -1, -1)[:, i], weight, words)


def test_empty_and_single():
    empty, one = torch.zeros(0, dtype=torch.int64), torch.tensor(2)
    weight = table(4, 6)
    for words in (empty, empty.view(3, 0), one, one.view(1), one.view(1, 1)):
        holds(lambda w, i: F.embedding(i, w) + 1, weight, words)
        holds(lambda w, i: w[i[None]] + 1, weight, words)
    holds(lambda w, i: F.embedding(i, w) + 1, table(4, 0), torch.tensor([1, 2]))
    holds(lambda w, i: w[i].sum(0), weight, empty)


def test_dims_of_an_index():
    x, i, j = table(4, 5, 6, 7), torch.tensor([[0, 3], [1, -1]]), torch.tensor([2, -5])
    holds(lambda x, i, j: x[:, j] * 2, x, i, j)
    holds(lambda x, i, j: x[i, j] * 2, x, i, j)
    holds(lambda x, i, j: x[:, i, j] * 2, x, i, j)
    holds(lambda x, i, j: x[i, :, j] * 2, x, i, j)
    holds(lambda x, i, j: x[i, :, :, j] * 2, x, i, j)
    holds(lambda x, i, j: x[..., i, j] * 2, x, i, j)
    holds(lambda x, i, j: x[:, None, j, 2, i] * 2, x, i, j)
    holds(lambda x, i, j: x.permute(3, 1, 0, 2)[j, :, i.t()] * 2, x, i, j)


def test_places_from_the_program_are_checked_before_they_are_used():
    weight, words = table(9, 16), torch.randint(0, 3, (4, 7))
    holds(lambda w, i: F.embedding(i * 2 + 1, w), weight, words, kernels=2)
    holds(lambda w, i: w.gather(0, (i + 1).t()).exp(), weight, words, kernels=2)
    holds(lambda w, i: F.embedding(F.embedding(i, w[:, :1].long().abs()).squeeze(-1), w), weight, words, kernels=3)


def test_a_range_is_a_view():
    weight = table(9, 16)
    holds(lambda w: F.embedding(torch.arange(5), w) + 1, weight)
    holds(lambda w: w[torch.arange(2, 8, 2)] + 1, weight)
    holds(lambda w: w.index_select(1, torch.arange(3, 9)) + 1, weight)
    holds(lambda w: F.embedding(torch.arange(4).unsqueeze(0), w) + 1, weight)
    with pytest.raises(IndexError, match="index out of range in self"):
        graphlift.compile(lambda w: F.embedding(torch.arange(10), w) + 1)(weight)


def embedded(words, token, place, gain, bias):
    x = F.embedding(words, token) + F.embedding(torch.arange(words.shape[1]), place)
    return F.layer_norm(x, (x.shape[-1],), gain, bias)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_embedding_position_and_norm_are_one_kernel(dtype):
    args = [table(50, 48, dtype=dtype), table(16, 48, dtype=dtype), table(48, dtype=dtype), table(48, dtype=dtype)]
    holds(embedded, torch.randint(0, 50, (3, 16)), *args)


def test_gradients():
    leaves = [table(50, 48).requires_grad_(), table(16, 48).requires_grad_(), table(48).requires_grad_()]
    words = torch.randint(0, 50, (3, 16))

    def loss(words, token, place, gain):
        return (
            (embedded(words, token, place, gain, None) * token[words.flip(0)]).gather(-1, words[..., None] % 48).sum()
        )

    expected = torch.autograd.grad(loss(words, *leaves), leaves)
    result, kernels, _ = counted(loss, words, *leaves)
    got = torch.autograd.grad(result, leaves)
    assert kernels > 0
    for a, b in zip(expected, got, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("rows", [1, 7, 300])
def test_cross_entropy(dtype, reduction, rows):
    scores, targets = table(rows, 37, dtype=dtype), torch.randint(0, 37, (rows,))
    holds(lambda x, t: F.nll_loss(x, t, reduction=reduction), scores, targets, kernels=1)
    targets[::3] = -100

    def loss(x, t):
        return F.cross_entropy(x, t, reduction=reduction)

    expected, got = (scores.clone().requires_grad_() for _ in range(2))
    a, b = loss(expected, targets), graphlift.compile(loss, fullgraph=True)(got, targets)
    different = close(a.detach(), b.detach())
    assert not different, different
    a.backward()
    b.backward()
    low = dtype == torch.bfloat16  # the softmax is rounded in between by eager
    torch.testing.assert_close(expected.grad, got.grad, **(dict(rtol=0.05, atol=0.01) if low else {}))


def stores(text):
    return " ".join(line for line in text.splitlines() if line.startswith("store "))


def test_of_a_log_softmax_only_what_the_loss_reads_is_computed(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("graphlift"), "propagate", True)
    graphlift.set_logs("output_code")
    scores, bias, targets = table(300, 37), table(37), torch.randint(0, 37, (300,))
    targets[::3] = -100
    programs = [
        (lambda x, b, t: F.cross_entropy(x, t), True),
        (lambda x, b, t: F.cross_entropy(x * 0.5, t), True),
        (lambda x, b, t: F.cross_entropy(x + b, t), False),  # of a row per batch there is none to pick from
        (lambda x, b, t: F.nll_loss(x.log_softmax(0), t), False),
    ]
    try:
        for program, alone in programs:
            caplog.clear()
            with caplog.at_level(logging.DEBUG):
                holds(program, scores, bias, targets, kernels=2)
            assert ("store v" in caplog.text) and alone == (" 37*a" not in stores(caplog.text))
    finally:
        graphlift.set_logs()


def test_sizes_that_vary():
    compiled = graphlift.compile(embedded, fullgraph=True, dynamic=True)
    args = [table(50, 48), table(40, 48), table(48), table(48)]
    before = graphlift.counters()["kernels"]
    for batch, length in ((2, 3), (4, 17), (1, 40), (3, 1)):
        words = torch.randint(0, 50, (batch, length))
        torch.testing.assert_close(compiled(words, *args), embedded(words, *args))
    assert graphlift.counters()["kernels"] > before
    with pytest.raises(IndexError, match="index out of range in self"):
        compiled(torch.randint(0, 50, (2, 41)), *args)


def eager_error(function, *args):
    with pytest.raises(Exception) as caught:  # noqa: PT011: the class is compared
        function(*args)
    return type(caught.value), str(caught.value).splitlines()[0]


WRONG = {
    "embedding": (lambda w, i: F.embedding(i, w) + 1, (3, 9, -1)),
    "index_select": (lambda w, i: w.index_select(0, i) + 1, (9, -1)),
    "gather": (lambda w, i: w.gather(0, i[:, None]) + 1, (9, -2)),
    "index": (lambda w, i: w[i] + 1, (9, -10)),
    "second dim": (lambda w, i: w[:, i] + 1, (4, -5)),
    "target": (lambda w, i: F.nll_loss(w[:3], i % 100), (4, 80)),
    "ignored": (lambda w, i: F.nll_loss(w[:3], i, ignore_index=3), (4, -1)),
    "of a log softmax": (lambda w, i: F.cross_entropy(w[:3], i % 100), (4, 80)),
    "of one class": (lambda w, i: F.cross_entropy(w[:3, :1], i // 4), (4, -1)),
    "computed": (lambda w, i: w[i + 5] + 1, (4,)),
}


@pytest.mark.parametrize("draws", [False, True], ids=["given back", "raised directly"])
@pytest.mark.parametrize("name", WRONG)
def test_places_out_of_range_are_eagers_errors(name, draws):
    body, places = WRONG[name]

    def function(w, i):
        noise = torch.rand(3) if draws else torch.zeros(3)
        return body(w, i), noise

    weight, good = table(9, 4), torch.tensor([0, 3, 2])
    compiled = graphlift.compile(function, fullgraph=True)
    compiled(weight, good)
    for place in places:
        bad = torch.tensor([0, place, 2])
        try:
            function(weight, bad)
        except Exception:  # noqa: BLE001, S110
            assert eager_error(compiled, weight, bad) == eager_error(function, weight, bad)
        else:
            torch.testing.assert_close(compiled(weight, bad)[0], function(weight, bad)[0])
    torch.testing.assert_close(compiled(weight, good)[0], function(weight, good)[0])
