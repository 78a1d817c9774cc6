"""Layers of torch.nn with ways of their own: recurrent, attention with masks, embeddings, hooks, parametrizations."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from judging import check, check_module, regions
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import parametrizations, parametrize, rnn

import graphlift


def words(*sizes):
    return lambda: (torch.randn(*sizes),)


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.LSTMCell(3, 4), nn.GRUCell(4, 4), nn.RNNCell(4, 4, nonlinearity="relu")

    def forward(self, x):
        h = c = g = r = x.new_zeros(x.shape[1], 4)
        for step in x:
            h, c = self.a(step, (h, c))
            g = self.b(h, g)
            r = self.c(g, r)
        return h, c, g, r


class WithState(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True)

    def forward(self, x):
        y, state = self.inner(x, (x.new_ones(4, x.shape[0], 4), x.new_zeros(4, x.shape[0], 4)))
        return self.inner(y[..., :3], state)


RECURRENT = {
    "LSTM": (lambda: nn.LSTM(3, 4), words(4, 2, 3)),
    "LSTM of two layers": (lambda: nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True), words(2, 4, 3)),
    "LSTM, projected": (lambda: nn.LSTM(3, 4, proj_size=2), words(4, 2, 3)),
    "LSTM with a state": (WithState, words(2, 4, 3)),
    "LSTM without a bias": (lambda: nn.LSTM(3, 4, bias=False), words(4, 3)),
    "dropout between": (lambda: nn.GRU(3, 4, 2, dropout=0.5), words(4, 2, 3)),
    "GRU": (lambda: nn.GRU(3, 4, bidirectional=True), words(4, 2, 3)),
    "RNN": (lambda: nn.RNN(3, 4, 2, nonlinearity="relu"), words(4, 2, 3)),
    "cells": (Cells, words(4, 2, 3)),
}


@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent(name, train):
    check_module(*RECURRENT[name], train=train)


def test_packed_sequences():
    torch.manual_seed(0)
    layer = nn.GRU(3, 4)

    def program(x, lengths):
        packed = rnn.pack_padded_sequence(x * 2, lengths, enforce_sorted=False)
        y, state = layer(packed)
        return rnn.pad_packed_sequence(y)[0] + 1, state

    counts = check(program, lambda k: (torch.ones(4, 2, 3) * k, torch.tensor([4, 2 + k])))
    assert counts["graph_breaks"] >= 1


class Masked(nn.Module):
    def __init__(self, **how):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True, **how)

    def forward(self, x):
        padding = x.new_zeros(x.shape[:2], dtype=torch.bool)
        padding[0, -1] = True
        causal = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        key, more = x[..., : self.attention.kdim], {"attn_mask": causal}
        y, weights = self.attention(x, key, key, key_padding_mask=padding.float() * -1e4, **more)
        z, nothing = self.attention(y, key, key, need_weights=False, is_causal=True, **more)
        v, heads = self.attention(z, key, key, key_padding_mask=padding, average_attn_weights=False)
        return y, weights, z, nothing, v, heads


ATTENTION = {
    "masks": (Masked, words(2, 3, 4)),
    "other keys": (lambda: Masked(kdim=3, vdim=3, add_bias_kv=False), words(2, 3, 4)),
    "dropout": (lambda: Masked(dropout=0.3), words(2, 3, 4)),
    "decoder": (lambda: nn.TransformerDecoderLayer(4, 2, 8, 0.0), lambda: (torch.randn(3, 2, 4), torch.randn(5, 2, 4))),
    "encoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0, norm_first=True), 2, None, False),
        words(3, 2, 4),
    ),
}


@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name, train):
    check_module(*ATTENTION[name], train=train)


PADDINGS = {
    "behind": [[0, 0, 0, 1], [0, 0, 0, 0]],
    "in front": [[1, 0, 0, 0], [0, 0, 0, 0]],  # skipped by nobody
    "a gap": [[0, 1, 0, 1], [0, 0, 1, 1]],
    "none": [[0, 0, 0, 0], [0, 0, 0, 0]],
    "scores": [[0, 0, -torch.inf, -torch.inf], [0, 0, 0, 0]],
}


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("padding", list(PADDINGS))
def test_padded_positions_of_an_encoder(padding, norm):
    """Eager skips them by way of nested tensors, and they are zero behind the layers."""
    torch.manual_seed(0)
    last = nn.LayerNorm(4, bias=True) if norm else None
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), 2, last).eval()
    if norm:
        nn.init.constant_(last.bias, 0.5)
    mask = torch.tensor(PADDINGS[padding])
    mask = mask if padding == "scores" else mask.bool()
    x, compiled = torch.randn(2, 4, 4), graphlift.compile(encoder)
    within = graphlift.compile(lambda x, mask: encoder(x * 1, src_key_padding_mask=mask) + 1, fullgraph=True)
    for _ in range(2):
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = encoder(x, src_key_padding_mask=mask)
            torch.testing.assert_close(compiled(x, src_key_padding_mask=mask), want)
            torch.testing.assert_close(within(x, mask), want + 1)
    want = encoder(x, src_key_padding_mask=mask)  # with gradients nothing is skipped
    torch.testing.assert_close(compiled(x, src_key_padding_mask=mask), want)


def test_padding_that_is_another_in_each_call():
    torch.manual_seed(0)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0, batch_first=True), 2).eval()
    compiled = graphlift.compile(encoder)
    x = torch.randn(3, 4, 4)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for lengths in ([4, 2, 3], [1, 2, 4], [4, 4, 4], [3, 0, 1]):
            mask = torch.arange(4) >= torch.tensor(lengths)[:, None]
            torch.testing.assert_close(compiled(x, src_key_padding_mask=mask), encoder(x, src_key_padding_mask=mask))
    regions(1, 0)


def scaled_dot_products(x):
    q = x.view(2, 3, 2, 2).transpose(1, 2)
    return [
        F.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(3, 3).tril().bool()),
        F.scaled_dot_product_attention(q, q, q, attn_mask=torch.linspace(-1, 1, 9).view(3, 3), scale=0.3),
        F.scaled_dot_product_attention(q, q, q, is_causal=True),
        F.scaled_dot_product_attention(q, q[:, :1], q[:, :1], enable_gqa=True),
    ]


def a_kernel_is_chosen(x):
    q = x.view(2, 3, 2, 2).transpose(1, 2)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION]):
        y = F.scaled_dot_product_attention(q, q, q)
        flash = torch.backends.cuda.flash_sdp_enabled()
    return y, flash, torch.backends.cuda.flash_sdp_enabled()


@pytest.mark.parametrize("program", [scaled_dot_products, a_kernel_is_chosen], ids=lambda f: f.__name__)
def test_products_of_attention(program):
    check(program, lambda k: ((torch.linspace(-1, 1, 24).reshape(2, 3, 4) + k).requires_grad_(),), graphs=1, breaks=0)


def test_kernels_that_attention_may_choose_are_guarded():
    def program(x):
        return x * (2 if torch.backends.cuda.flash_sdp_enabled() else 3)

    compiled, x = graphlift.compile(program), torch.ones(2)
    for enabled in (True, False, True):
        torch.backends.cuda.enable_flash_sdp(enabled)
        assert torch.equal(compiled(x), program(x))
    regions(2, 0)


class Embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.padded = nn.Embedding(7, 3, padding_idx=2)
        self.bag = nn.EmbeddingBag(7, 3, mode="mean", padding_idx=1)
        self.longest = nn.EmbeddingBag(7, 3, mode="max")

    def forward(self, index):
        plain = F.embedding(index, self.padded.weight, padding_idx=-1)
        offsets = torch.tensor([0, 2])
        weighted = F.embedding_bag(
            index.flatten(), self.bag.weight, offsets, mode="sum", per_sample_weights=index.flatten() * 0.5
        )
        return self.padded(index), plain, self.bag(index), self.longest(index.flatten(), offsets), weighted


def test_embeddings():
    check_module(Embeddings, lambda: (torch.randint(0, 7, (2, 3)),))


def test_an_embedding_that_is_renormalized():
    def inputs(k):
        return torch.tensor([[0, 2, 4], [2, 5, k]]), torch.linspace(-3, 3, 21).reshape(7, 3)

    check(lambda index, weight: F.embedding(index, weight, max_norm=1.0), inputs, graphs=1, breaks=0)


def doubles(module, inputs, outputs=None):
    given = inputs if outputs is None else outputs
    return tuple(v * 2 for v in given) if isinstance(given, tuple) else given * 2


def with_hooks(*names):
    def make():
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        for name in names:
            getattr(net[1], name)(doubles)
        return net

    return make


HOOKS = [
    ("register_forward_pre_hook",),
    ("register_forward_hook",),
    ("register_forward_pre_hook", "register_forward_hook"),
    ("register_full_backward_hook",),
    ("register_full_backward_pre_hook",),
    ("register_full_backward_hook", "register_forward_hook"),
]


@pytest.mark.parametrize("hooks", HOOKS, ids=", ".join)
def test_hooks_of_modules(hooks):
    net, other = with_hooks(*hooks)(), with_hooks(*hooks)()
    other.load_state_dict(net.state_dict())
    compiled = graphlift.compile(other)
    for k in range(3):
        xs = [torch.linspace(-1, 1, 6).reshape(2, 3).add(k).requires_grad_() for _ in range(2)]
        results = [f(x) for f, x in zip((net, compiled), xs, strict=True)]
        torch.testing.assert_close(*results)
        for module, result in zip((net, other), results, strict=True):
            module.zero_grad()
            result.pow(2).sum().backward()
        torch.testing.assert_close(xs[1].grad, xs[0].grad)
        torch.testing.assert_close([p.grad for p in other.parameters()], [p.grad for p in net.parameters()])
    regions(1, 0)


class Symmetric(nn.Module):
    def forward(self, weight):
        return weight.triu() + weight.triu(1).T


class Twice(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        with parametrize.cached():
            return self.layer(x) + self.layer(x * 2)


def parametrized():
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    return layer


def old_weight_norm():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nn.utils.weight_norm(nn.Linear(3, 4))


NORMS = {
    "weight_norm": lambda: parametrizations.weight_norm(nn.Linear(3, 4)),
    "weight_norm of old": old_weight_norm,
    "weight_norm of a convolution": lambda: nn.Sequential(
        nn.Unflatten(1, (1, 3)), parametrizations.weight_norm(nn.Conv1d(1, 2, 2), dim=0)
    ),
    "spectral_norm": lambda: parametrizations.spectral_norm(nn.Linear(3, 4)),
    "orthogonal": lambda: parametrizations.orthogonal(nn.Linear(3, 3)),
    "own": parametrized,
    "cached": lambda: Twice(parametrized()),
}


@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("name", NORMS)
def test_parametrizations(name, train):
    torch.manual_seed(0)
    plain = NORMS[name]().train(train)
    torch.manual_seed(0)
    other = NORMS[name]().train(train)
    other.load_state_dict(plain.state_dict())
    compiled = graphlift.compile(other)
    for k in range(3):
        x = torch.linspace(-1, 1, 6).reshape(2, 3) + k
        torch.testing.assert_close(compiled(x), plain(x))
        for module, f in ((plain, plain), (other, compiled)):
            module.zero_grad()
            f(x).pow(2).sum().backward()
        torch.testing.assert_close([p.grad for p in other.parameters()], [p.grad for p in plain.parameters()])
        torch.testing.assert_close(list(other.buffers()), list(plain.buffers()))
    regions(1, 0)
