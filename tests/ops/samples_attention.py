"""Samples of fused attention."""

import torch
from making import BF16, F16, F32, F64
from rules import call
from samples import samples


def heads(make, batch=2, count=3, length=5, size=8, dtype=F32):
    """[batch, heads, length, size] in the two usual layouts."""
    yield make(batch, count, length, size, dtype=dtype)
    yield make(batch, length, count, size, dtype=dtype).transpose(1, 2)


@samples("_scaled_dot_product_flash_attention_for_cpu")
def flash_cpu(make):
    for dtype in (F32, F64, BF16):
        for query in heads(make, dtype=dtype):
            for key in heads(make, length=7, dtype=dtype):
                yield call(query, key, key)
    query, mask = make(2, 3, 5, 8), make(2, 1, 5, 5)
    yield call(query, query, query, 0.0, True)
    yield call(query, query, query, 0.0, False, attn_mask=mask, scale=0.5)
    yield call(make(1, 3, 5, 8), make(1, 3, 5, 8), make(1, 3, 5, 8))
    yield call(make(2, 1, 5, 8), make(2, 1, 5, 8), make(2, 1, 5, 8))
    yield call(make(2, 3, 1, 8), make(2, 3, 1, 8), make(2, 3, 1, 8))


@samples("_scaled_dot_product_flash_attention_for_cpu_backward")
def flash_cpu_backward(make):
    if make.device != "cpu":
        return
    for query in heads(make):
        for key in heads(make, length=7):
            out, logsumexp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, key, key)
            for grad in heads(make):
                yield call(grad, query, key, key, out, logsumexp, 0.0, False)


def half_heads(make):
    for dtype in (F16, BF16):
        yield from heads(make, size=64, dtype=dtype)


@samples("_scaled_dot_product_flash_attention")
def flash_cuda(make):
    for query in half_heads(make):
        yield call(query, query, query)
        yield call(query, query, query, 0.1, True)
        yield call(query, make(2, 3, 7, 64, dtype=query.dtype), make(2, 3, 7, 64, dtype=query.dtype))


@samples("_scaled_dot_product_flash_attention_backward")
def flash_cuda_backward(make):
    for query in half_heads(make):
        if query.is_cuda:
            forward = torch.ops.aten._scaled_dot_product_flash_attention(query, query, query)
            yield call(
                make(2, 3, 5, 64, dtype=query.dtype), query, query, query, *forward[:6], 0.0, False, *forward[6:8]
            )


@samples("_scaled_dot_product_efficient_attention")
def efficient_cuda(make):
    for dtype in (F32, F16):
        for query in heads(make, size=64, dtype=dtype):
            yield call(query, query, query, None, True)
            yield call(query, query, query, None, False, 0.1, True)


@samples("_scaled_dot_product_efficient_attention_backward")
def efficient_cuda_backward(make):
    for query in heads(make, size=64):
        if query.is_cuda:
            forward = torch.ops.aten._scaled_dot_product_efficient_attention(query, query, query, None, True)
            yield call(make(2, 3, 5, 64), query, query, query, None, *forward, 0.0, [True, True, True, False])


@samples("_scaled_dot_product_cudnn_attention")
def cudnn(make):
    for query in half_heads(make):
        yield call(query, query, query, None, True)
        yield call(query, query, query, None, False, 0.0, True)


@samples("_scaled_dot_product_cudnn_attention_backward")
def cudnn_backward(make):
    for query in half_heads(make):
        if query.is_cuda:
            out, lse, start_q, start_k, *rest, _ = torch.ops.aten._scaled_dot_product_cudnn_attention(
                query, query, query, None, True
            )
            longest_q, longest_k, seed, offset = rest
            bounds = (None, start_q, start_k, longest_q, longest_k, 0.0, False)
            yield call(torch.ones_like(out), query, query, query, out, lse, seed, offset, *bounds)


@samples("_native_multi_head_attention")
def multi_head(make):
    x = make(2, 5, 8)
    for source in (x, make(5, 2, 8).transpose(0, 1)):
        for weights, average in ((True, True), (True, False), (False, True)):
            parts = make(24, 8), make(24), make(8, 8), make(8)
            yield call(source, source, source, 8, 2, *parts, None, weights, average)


@samples("_transformer_encoder_layer_fwd")
def encoder_layer(make):
    for source in (make(2, 5, 8), make(5, 2, 8).transpose(0, 1)):
        for norm_first in (False, True):
            parts = (
                make(24, 8),
                make(24),
                make(8, 8),
                make(8),
                False,
                norm_first,
                1e-5,
                make(8),
                make(8),
                make(8),
                make(8),
            )
            parts += (make(16, 8), make(16), make(8, 16), make(8))
            yield call(source, 8, 2, *parts)
            yield call(source, 8, 2, *parts, torch.zeros(5, 5, dtype=torch.bool, device=source.device), 0)
