"""torch.nn.attention.flex_attention and create_mask, captured: scores and masks as tensors, as eager computes them.

Owns the formulas that stand in the place of torch's operator, whose eager form runs torch's compiler in each call. Must
not be called outside of a capture, except for what goes on in one behind a graph break.
"""

import math
import types

import torch
from torch.nn.attention import flex_attention as torch_flex

from graphlift.originals import copied


def index(tensor, places):
    """`tensor[places]`, where a mask's or score's function indexes: a tensor of one number is no number, but an index.

    NotImplemented: an index of another kind.
    """
    given = places if type(places) is tuple else tuple(places) if type(places) is list else (places,)
    if not given or not all(isinstance(item, torch.Tensor | int) for item in given):
        return NotImplemented
    where = [item if isinstance(item, torch.Tensor) else torch.tensor(item, device=tensor.device) for item in given]
    return torch.ops.aten.index.Tensor(tensor, where)


def _places(*counts, device):
    return [torch.arange(0, count, device=device) for count in counts]


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """torch's: the mask of a function of batch, head, query and key."""
    if device is None:
        device = torch.accelerator.current_accelerator() or "cpu"
    B, H = 1 if B is None else B, 1 if H is None else H
    places = _places(B, H, Q_LEN, KV_LEN, device=device)
    if torch_flex._get_mod_type(mod_fn) == torch_flex._ModificationType.SCORE_MOD:
        scores = torch.zeros(B, H, Q_LEN, KV_LEN, device=device)
        out = torch_flex._vmap_for_bhqkv(mod_fn, prefix=(0,))(scores, *places)
        return torch.where(torch.isneginf(out), False, True)
    return torch_flex._vmap_for_bhqkv(mod_fn, prefix=())(*places)


def _cast(tensor, device_type, dtype):
    eligible = tensor.is_floating_point() and tensor.device.type == device_type and tensor.dtype is not torch.float64
    return tensor.to(dtype) if eligible else tensor


def _attention(query, key, value, score_mod, block_mask, scale, kernel_options):
    """The result, and the logarithm of the exponentials' sums and the greatest scores, of each row, to base 2."""
    device_type = query.device.type
    if not torch.is_autocast_enabled(device_type):
        return _plain_attention(query, key, value, score_mod, block_mask[-1], scale)
    dtype = torch.get_autocast_dtype(device_type)
    query, key, value = (_cast(tensor, device_type, dtype) for tensor in (query, key, value))
    with torch.autocast(device_type, enabled=False):
        return _plain_attention(query, key, value, score_mod, block_mask[-1], scale)


class _Given(torch.autograd.Function):
    """An argument, whose gradient has its dims in the same order in memory."""

    @staticmethod
    def forward(ctx, tensor):
        ctx.strides = tensor.stride()
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx, gradient):
        return _laid_out(gradient, ctx.strides)


def _plain_attention(query, key, value, score_mod, mask_mod, scale):
    strides = query.stride()
    query, key, value = _Given.apply(query), _Given.apply(key), _Given.apply(value)
    groups = query.size(1) // key.size(1)
    if groups != 1:
        key, value = (torch.repeat_interleave(tensor, groups, dim=1) for tensor in (key, value))
    batch, others = query.size(0), key.size(0)
    if batch != others:
        if others != 1:
            raise RuntimeError(f"Bq and Bkv must broadcast. Got Bq={batch} and Bkv={others}")
        key, value = (tensor.expand((batch, *tensor.size()[1:])) for tensor in (key, value))
    dtype = torch.float64 if query.dtype is torch.float64 else torch.float32
    scores = query.to(dtype) @ key.to(dtype).transpose(-2, -1) * scale
    places = _places(*scores.shape, device=scores.device)
    mask = torch_flex._vmap_for_bhqkv(mask_mod, prefix=())(*places)
    modified = torch_flex._vmap_for_bhqkv(score_mod, prefix=(0,))(scores, *places)
    modified = torch.where(mask, modified, torch.tensor(-math.inf, dtype=dtype, device=scores.device))
    sums = modified.logsumexp(dim=-1)
    sums = torch.where(torch.all(modified == -math.inf, dim=-1), -math.inf, sums)
    greatest = modified.detach().amax(dim=-1)
    if (
        score_mod is torch_flex._identity and query.device.type == "cpu"
    ):  # scores are left to the kernel, unless asked for
        mask = None if mask_mod is torch_flex.noop_mask else mask
        out = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)
    else:
        out = torch._safe_softmax(modified, dim=-1).to(query.dtype) @ value.to(query.dtype)
    return _laid_out(out, strides), sums / math.log(2), greatest / math.log(2)


def _laid_out(out, strides):
    """With dims in the order in memory that the query's have, the last one innermost."""
    last = out.dim() - 1
    order = sorted(range(out.dim()), key=lambda dim: (dim != last, strides[dim], -dim))
    outermost_first = order[::-1]
    back = [outermost_first.index(dim) for dim in range(out.dim())]
    return out.permute(outermost_first).contiguous().permute(back)


# What torch's function asks torch for where torch.compile captures it.
_torch = types.SimpleNamespace(
    compiler=types.SimpleNamespace(is_dynamo_compiling=lambda: True),
    _dynamo=types.SimpleNamespace(mark_static=lambda tensor, dim: None, is_dynamo_supported=lambda: True),
)


# By the name of torch's function.
TABLE = {
    "torch.nn.attention.flex_attention.flex_attention": copied(  # torch's own checks
        torch_flex.flex_attention, torch=_torch, flex_attention_hop=_attention
    ),
    "torch.nn.attention.flex_attention.create_mask": create_mask,
}
