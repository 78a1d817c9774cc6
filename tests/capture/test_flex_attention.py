"""torch.nn.attention.flex_attention: one graph, equal to eager's, whatever its functions of scores and masks read."""

import warnings

import pytest
import torch
import torch.nn.attention.flex_attention as flex
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import graphlift
from graphlift import attention

pytestmark = pytest.mark.filterwarnings("ignore")
torch.manual_seed(0)
SLOPES, TABLE = torch.randn(4), torch.randn(4, 80)
DOCUMENTS = torch.randint(0, 3, (2, 32))


def causal(batch, head, query, key):
    return query >= key


def same_document(batch, head, query, key):
    return DOCUMENTS[batch, query] == DOCUMENTS[batch, key]


def tail_only(batch, head, query, key):
    return key > query  # of the last row nothing


def alibi(score, batch, head, query, key):
    return score + SLOPES[head] * (key - query)


def relative(score, batch, head, query, key):
    return score + TABLE[head, query - key + 32] + SLOPES[0]


def capped(score, batch, head, query, key):
    return 5 * torch.tanh(score / 5)


def masked(mask, heads=None, batch=None):
    return create_block_mask(mask, batch, heads, 32, 32, device="cpu")


CAUSAL, DOCUMENT, TAIL = masked(causal), masked(same_document, batch=2), masked(tail_only)

PROGRAMS = {
    "plain": lambda q, k, v: flex_attention(q, k, v),
    "a score that reads a tensor": lambda q, k, v: flex_attention(q, k, v, score_mod=alibi),
    "a score that looks up": lambda q, k, v: flex_attention(q, k, v, score_mod=relative, block_mask=CAUSAL),
    "a scale": lambda q, k, v: flex_attention(q, k, v, score_mod=capped, block_mask=CAUSAL, scale=0.3),
    "a mask that looks up": lambda q, k, v: flex_attention(q, k, v, block_mask=DOCUMENT),
    "rows without any key": lambda q, k, v: flex_attention(q, k, v, block_mask=TAIL, return_lse=True),
    "sums": lambda q, k, v: flex_attention(q, k, v, block_mask=CAUSAL, return_lse=True),
    "groups of heads": lambda q, k, v: flex_attention(
        q, k[:, :2], v[:, :2], score_mod=alibi, block_mask=CAUSAL, enable_gqa=True
    ),
    "a mask made inside": lambda q, k, v: flex_attention(
        q, k, v, block_mask=create_block_mask(causal, None, None, q.shape[2], k.shape[2], device="cpu")
    ),
    "a mask of scores": lambda q, k, v: flex.create_mask(relative, 1, 4, 8, 8, device="cpu") | (q[:, :, :8, :8] > 0),
    "an index behind another": lambda q, k, v: flex_attention(
        q, k, v, score_mod=lambda score, batch, head, query, key: score * TABLE[head][query] + TABLE[1:, 3:][2][key]
    ),
    "heads innermost in memory": lambda q, k, v: flex_attention(
        q.transpose(1, 2).contiguous().transpose(1, 2), k, v, score_mod=alibi
    ),
    "between others": lambda q, k, v: flex_attention(q.sin(), k * 2, v, score_mod=capped).relu() + q,
}
# Torch's own gradient of an index behind another is an error.
DIFFERENTIABLE = {
    name: program for name, program in PROGRAMS.items() if name not in ("a mask of scores", "an index behind another")
}


def inputs(length=32, **how):
    return [torch.randn(2, 4, length, 8, **how) for _ in range(3)]


def alike(got, expected, **tolerance):
    got, expected = (value if isinstance(value, tuple) else (value,) for value in (got, expected))
    for ours, eager in zip(got, expected, strict=True):
        if isinstance(eager, tuple):
            alike(ours, eager, **tolerance)
        elif eager is None:
            assert ours is None
        else:
            torch.testing.assert_close(ours, eager, check_stride=True, **tolerance)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_one_graph(program):
    compiled = graphlift.compile(program, fullgraph=True)
    for _ in range(2):
        args = inputs()
        expected = program(*args)  # first: torch warns once
        alike(compiled(*args), expected)
    assert graphlift.graph_count() == 1


@pytest.mark.parametrize("program", DIFFERENTIABLE.values(), ids=DIFFERENTIABLE)
def test_gradients(program, monkeypatch):
    """Torch differentiates it on CPU as on CUDA, once its refusal is out of the way."""
    captured = attention.TABLE["torch.nn.attention.flex_attention.flex_attention"]
    for names in (vars(flex), captured.__globals__):
        monkeypatch.setitem(names, "_validate_device", lambda query, key, value: None)
    results = []
    given = inputs()
    for function in (program, graphlift.compile(program, fullgraph=True)):
        args = [tensor.clone().requires_grad_() for tensor in given]
        leaves = [*args, SLOPES.requires_grad_(), TABLE.requires_grad_()]
        try:
            out = function(*args)
            first, lse = out if isinstance(out, tuple) else (out, out)
            total = first.sin().sum() + lse.where(lse.isfinite(), 0).cos().sum()
            results.append(torch.autograd.grad(total, leaves, allow_unused=True))
        finally:
            SLOPES.requires_grad_(False), TABLE.requires_grad_(False)
    alike(*results, rtol=1e-4, atol=1e-4)


def test_what_functions_read_is_guarded_or_an_input(monkeypatch):
    program = PROGRAMS["a score that reads a tensor"]
    compiled, args = graphlift.compile(program, fullgraph=True), inputs()
    before = compiled(*args)
    monkeypatch.setitem(globals(), "SLOPES", torch.zeros(4))
    after = compiled(*args)
    alike(after, program(*args))
    assert not torch.equal(before, after)
    SLOPES[1] = 3
    alike(compiled(*args), program(*args))
    monkeypatch.setitem(globals(), "alibi", capped)
    alike(compiled(*args), program(*args))


def test_another_mask():
    def program(q, k, v, mask):
        return flex_attention(q, k, v, block_mask=mask)

    compiled, args = graphlift.compile(program, fullgraph=True), inputs()
    for mask in (CAUSAL, TAIL, DOCUMENT, None, CAUSAL):
        alike(compiled(*args, mask), program(*args, mask))


def test_lengths_that_vary():
    program = PROGRAMS["a score that reads a tensor"]
    compiled = graphlift.compile(program, fullgraph=True)
    for length in (16, 24, 32, 20, 9):
        args = inputs(length)
        alike(compiled(*args), program(*args))
    assert graphlift.graph_count() == 2


def test_low_precision_and_autocast():
    program = PROGRAMS["a score that looks up"]
    compiled, args = graphlift.compile(program, fullgraph=True), inputs(dtype=torch.bfloat16)
    alike(compiled(*args), program(*args), rtol=2e-2, atol=2e-2)
    args = inputs()
    for enabled in (True, False):
        with torch.autocast("cpu", enabled=enabled):
            tolerance = {"rtol": 2e-2, "atol": 2e-2} if enabled else {}
            alike(compiled(*args), program(*args), **tolerance)


@pytest.mark.parametrize(
    "program",
    [
        lambda q, k, v: flex_attention(q, k[:, :2], v),
        lambda q, k, v: flex_attention(q[0], k, v),
        lambda q, k, v: flex_attention(q, k, v, block_mask=masked(causal)._adjust(8, 8)),
        lambda q, k, v: flex_attention(q.requires_grad_(), k, v),
        lambda q, k, v: flex_attention(q, k, v, kernel_options={"BACKEND": "mine"}),
    ],
    ids=["heads", "dims", "lengths", "gradients on CPU", "backend"],
)
def test_what_torch_refuses(program):
    messages = []
    for function in (program, graphlift.compile(program)):
        with pytest.raises(Exception) as raised:
            function(*inputs())
        messages.append((type(raised.value), str(raised.value)))
    assert messages[0] == messages[1]


def test_indexing_elsewhere_is_of_numbers():
    """A tensor of one number as an index is a number outside of such functions, and reads its value."""

    def program(q, k, v, table, place):
        return flex_attention(q, k, v, score_mod=alibi) + table[place]

    compiled, args = graphlift.compile(program), inputs()
    for place in (1, 3):
        more = torch.randn(5, 8), torch.tensor(place)
        alike(compiled(*args, *more), program(*args, *more))


def test_nothing_of_torchs_compiler_is_run(monkeypatch):
    import torch._dynamo

    monkeypatch.setattr(torch, "compile", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = graphlift.compile(PROGRAMS["plain"])
        assert compiled(*inputs()).shape == (2, 4, 32, 8)
