"""What a program says to the compiler: leave this out, break here, sizes vary here; and what it asks: counts, state."""

import functools
import types

import torch

from . import _C
from .module import disable_module

# torch's own names, so that tensors marked by either package are seen.
_DYNAMIC, _MAYBE_DYNAMIC, _STATIC = "_dynamo_dynamic_indices", "_dynamo_weak_dynamic_indices", "_dynamo_static_indices"
_DISABLED = ("_graphlift_disable", "_torchdynamo_disable")


def disable(fn=None, *, reason=None):
    """Returns a form of the function or module that is never captured: calling it is a graph break. Also a decorator.

    What it calls runs in eager too. `reason` is shown in the break's message.
    """
    if fn is None:
        return functools.partial(disable, reason=reason)
    if isinstance(fn, torch.nn.Module):
        return disable_module(fn)
    if isinstance(fn, staticmethod | classmethod):
        return type(fn)(disable(fn.__func__, reason=reason))
    if isinstance(fn, types.MethodType):
        return types.MethodType(disable(fn.__func__, reason=reason), fn.__self__)
    if not callable(fn) or isinstance(fn, type):
        raise TypeError(f"disable takes a function, method or module, not {fn!r}")

    @functools.wraps(fn, updated=())
    def disabled(*args, **kwargs):
        return fn(*args, **kwargs)

    disabled.__dict__.update(getattr(fn, "__dict__", {}))
    disabled.__wrapped__ = fn
    disabled._graphlift_disable = True
    disabled._graphlift_disable_reason = reason
    return disabled


def is_disabled(fn) -> bool:
    """The callable was marked by graphlift.disable or by torch.compiler.disable."""
    # Compared with True: an object that answers every attribute with something is not marked.
    marks = [type(fn).__call__] if isinstance(fn, torch.nn.Module) else [fn]
    return any(getattr(mark, name, None) is True for mark in marks for name in _DISABLED)


def graph_break(message: str = "") -> None:
    """Ends the region here while capturing; does nothing otherwise."""
    _C.graph_break(message)


def is_compiling() -> bool:
    """True while graphlift captures on this thread."""
    return _C.is_capturing()


def reset() -> None:
    """Drops all regions and counters; what was compiled is captured anew when it is called next."""
    _C.reset()


def graph_count() -> int:
    """Regions compiled since the last reset()."""
    return _C.graph_count()


def counters() -> dict:
    """Counts since the last reset(); `counters()["graph_break"]` maps each reason to its number."""
    return _C.counters()


def mark_dynamic(tensor, dim) -> None:
    """The tensor's size in `dim` (an int or several) varies: capture it as a symbol; an error if it has to be fixed."""
    _mark(tensor, dim, _DYNAMIC)


def maybe_mark_dynamic(tensor, dim) -> None:
    """As mark_dynamic, but the size may still become fixed."""
    _mark(tensor, dim, _MAYBE_DYNAMIC)


def mark_static(tensor, dim=None) -> None:
    """The tensor's size in `dim` (an int, several, or None for all) is fixed: a new size is a new region."""
    _mark(tensor, range(tensor.dim()) if dim is None else dim, _STATIC)


def _mark(tensor, dim, attribute):
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"a tensor's sizes can be marked, not those of {type(tensor).__name__}")
    for index in (dim,) if isinstance(dim, int) else dim:
        if not -tensor.dim() <= index < tensor.dim():
            raise IndexError(f"dimension {index} of a tensor with {tensor.dim()} dimensions")
        if attribute not in tensor.__dict__:
            setattr(tensor, attribute, set())
        getattr(tensor, attribute).add(index % tensor.dim())
