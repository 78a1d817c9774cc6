"""Python that is captured in place of functions of torch and the standard library which lock, or act behind its back.

Owns functions that do what the originals do, as far as a program can tell, by means that can be captured. Each has the
original's signature. Must not be called outside of a capture, except for what goes on in one behind a graph break.
"""

import types

from torch.utils import checkpoint as torch_checkpoint

_MISSING = object()


def _copy(function):
    """The same function as another object, which has no substitute."""
    made = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def begin_checkpoint() -> None:
    """Calls recorded from now on are made again by backward rather than saved. Nothing outside of a capture."""


def end_checkpoint() -> None:
    """The end of the innermost begin_checkpoint()."""


_without_reentrant = _copy(torch_checkpoint._checkpoint_without_reentrant_generator)
_no_contexts = torch_checkpoint.noop_context_fn


def checkpoint_without_reentrant(
    fn,
    preserve_rng_state=True,
    context_fn=_no_contexts,
    determinism_check="default",
    debug=False,
    early_stop=True,
    *args,
    **kwargs,
):
    """torch.utils.checkpoint's two halves, before and behind `fn`: the partition saves what torch's hooks would."""
    if context_fn is not _no_contexts or debug:
        yield from _without_reentrant(
            fn, preserve_rng_state, context_fn, determinism_check, debug, early_stop, *args, **kwargs
        )
        return
    yield from _halves()


def _halves():
    begin_checkpoint()
    try:
        yield
    finally:
        end_checkpoint()


# torch 2.14 and later: the arguments of `fn` as a tuple and a dict.
_NAME = "_checkpoint_without_reentrant_generator_impl"
_without_reentrant_2_14 = _copy(getattr(torch_checkpoint, _NAME)) if hasattr(torch_checkpoint, _NAME) else None


def checkpoint_without_reentrant_2_14(fn, args, kwargs, *, context_fn=_no_contexts, debug=False, **options):
    """The same; what is left in `options` is of no matter to the two halves."""
    if context_fn is not _no_contexts or debug:
        yield from _without_reentrant_2_14(fn, args, kwargs, context_fn=context_fn, debug=debug, **options)
        return
    yield from _halves()


def cached_property_get(self, instance, owner=None):
    """functools.cached_property.__get__ without its lock (which CPython 3.12 dropped)."""
    if instance is None:
        return self
    if self.attrname is None:
        raise TypeError("Cannot use cached_property instance without calling __set_name__ on it.")
    try:
        cache = instance.__dict__
    except AttributeError:
        message = (
            f"No '__dict__' attribute on {type(instance).__name__!r} instance to cache {self.attrname!r} property."
        )
        raise TypeError(message) from None
    value = cache.get(self.attrname, _MISSING)
    if value is _MISSING:
        value = self.func(instance)
        cache[self.attrname] = value
    return value


# By module and qualified name of the original.
TABLE = {
    "functools.cached_property.__get__": cached_property_get,
    "torch.utils.checkpoint._checkpoint_without_reentrant_generator": checkpoint_without_reentrant,
    f"torch.utils.checkpoint.{_NAME}": checkpoint_without_reentrant_2_14,
}
