"""nn.TransformerEncoder, captured: padded positions are zero where eager skips them by way of nested tensors.

Owns the forward that stands in the place of torch's, which under a compiler leaves values at padded positions. Must
not be called outside of a capture, except for what goes on in one behind a graph break.
"""

import torch
from torch.nn import functional as F
from torch.nn.modules import transformer

from graphlift.originals import copied

_plain_forward = copied(transformer.TransformerEncoder.forward)


def _tensors(layer):
    """What torch's own kernel for a layer reads."""
    attention = layer.self_attn
    return (
        attention.in_proj_weight,
        attention.in_proj_bias,
        attention.out_proj.weight,
        attention.out_proj.bias,
        layer.norm1.weight,
        layer.norm1.bias,
        layer.norm2.weight,
        layer.norm2.bias,
        layer.linear1.weight,
        layer.linear1.bias,
        layer.linear2.weight,
        layer.linear2.bias,
    )


def _skips_padding(encoder, src, mask, padding):
    """Whether eager skips padded positions, if they are behind the others in each sequence."""
    if not torch.backends.mha.get_fastpath_enabled() or not getattr(encoder, "use_nested_tensor", False):
        return False
    if not getattr(encoder, "mask_check", True) or encoder.layers[0].training or padding is None or mask is not None:
        return False
    if src.dim() != 3 or src.is_nested or padding.shape != src.shape[:2] or torch.is_autocast_enabled():
        return False
    tensors = (src, *_tensors(encoder.layers[0]))
    if torch.overrides.has_torch_function(tensors) or src.device.type not in ("cpu", "cuda", "xpu"):
        return False
    return not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors))


def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
    """torch's; what eager skips is computed and thrown away."""
    if not _skips_padding(self, src, mask, src_key_padding_mask):
        return _plain_forward(self, src, mask, src_key_padding_mask, is_causal)
    padding = F._canonical_mask(
        mask=src_key_padding_mask,
        mask_name="src_key_padding_mask",
        other_type=F._none_or_dtype(mask),
        other_name="mask",
        target_type=src.dtype,
    )
    kept = padding.logical_not()
    count = kept.sum(1)
    behind = torch.cat([kept, torch.zeros_like(kept[:, :1])], 1).to(torch.int32).argmin(1)
    is_causal = transformer._detect_is_causal_mask(mask, is_causal, src.size(1))
    output = src
    for layer in self.layers:
        output = layer(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=padding)
    output = torch.where((kept | (count != behind).any()).unsqueeze(2), output, 0.0)
    return output if self.norm is None else self.norm(output)
