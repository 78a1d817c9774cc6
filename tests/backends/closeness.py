"""When a compiled result is eager's: the rules of tolerance, by dtype. Must not know what computed it."""

import torch

# Relative and absolute. Reductions in another order, other polynomials; 16-bit floats keep more between fused calls.
TOLERANCE = {
    torch.float64: (1e-9, 1e-10),
    torch.float32: (2e-5, 5e-6),
    torch.bfloat16: (2e-2, 2e-2),
    torch.float16: (4e-3, 4e-3),
}


def _scale(eager):
    """What the absolute tolerance is multiplied with: a sum whose terms cancel keeps the rounding of its terms, and how
    large those are, the other elements tell. The median, so that a few large elements excuse nothing."""
    if not eager.is_floating_point():
        return 1.0
    finite = eager.detach().flatten().double().abs()
    finite = finite[finite.isfinite()]
    return max(1.0, finite.median().item()) if finite.numel() > 0 else 1.0


def _strides(tensor):
    """Of dims of one element they say nothing."""
    return [stride for stride, size in zip(tensor.stride(), tensor.shape) if size != 1]


def close(eager, got):
    """In words how two results differ; empty: they don't."""
    if isinstance(eager, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(eager):
            return f"{type(got).__name__} instead of {len(eager)} results"
        return next((text for text in map(close, eager, got) if text), "")
    if not isinstance(eager, torch.Tensor):
        return "" if eager == got else f"{got!r} instead of {eager!r}"
    for fact in ("dtype", "shape", "device"):
        if getattr(eager, fact) != getattr(got, fact):
            return f"{fact} {getattr(got, fact)} instead of {getattr(eager, fact)}"
    if eager.numel() > 0 and _strides(eager) != _strides(got):
        return f"strides {got.stride()} instead of {eager.stride()}"
    relative, absolute = TOLERANCE.get(eager.dtype, (0, 0))
    if torch.allclose(eager, got, rtol=relative, atol=absolute * _scale(eager), equal_nan=True):
        return ""
    worst = (eager.double() - got.double()).abs().nan_to_num(float("inf")).max() if not eager.is_complex() else "?"
    return f"values differ by {worst}: {got.flatten()[:6].tolist()} instead of {eager.flatten()[:6].tolist()}"
