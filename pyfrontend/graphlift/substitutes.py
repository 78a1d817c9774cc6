"""Python that is captured in place of functions of torch and the standard library which lock, or act behind its back.

Owns functions that do what the originals do, as far as a program can tell, by means that can be captured. Each has the
original's signature. Must not be called outside of a capture, except for what goes on in one behind a graph break.
"""

import contextlib
import types

import torch
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan as torch_scan
from torch._higher_order_ops.while_loop import while_loop as torch_while_loop
from torch.utils import checkpoint as torch_checkpoint

from graphlift import encoders
from graphlift.originals import copied

_MISSING = object()


def begin_checkpoint(reentrant: bool = False) -> None:
    """Calls recorded from now on are made again by backward rather than saved. Nothing outside of a capture."""


def end_checkpoint() -> None:
    """The end of the innermost begin_checkpoint()."""


_without_reentrant = copied(torch_checkpoint._checkpoint_without_reentrant_generator)
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
_without_reentrant_2_14 = copied(getattr(torch_checkpoint, _NAME)) if hasattr(torch_checkpoint, _NAME) else None


def checkpoint_without_reentrant_2_14(fn, args, kwargs, *, context_fn=_no_contexts, debug=False, **options):
    """The same; what is left in `options` is of no matter to the two halves."""
    if context_fn is not _no_contexts or debug:
        yield from _without_reentrant_2_14(fn, args, kwargs, context_fn=context_fn, debug=debug, **options)
        return
    yield from _halves()


class _Joined(torch.autograd.Function):
    """A result of a reentrant checkpoint: it requires a gradient like all of them, whatever it was computed from."""

    @staticmethod
    def forward(ctx, value, anchor):
        return value.view_as(value)

    @staticmethod
    def backward(ctx, gradient):
        return None, None


def _without_history(value):
    if isinstance(value, torch.Tensor):
        return value.detach()
    if type(value) in (list, tuple):
        return type(value)([_without_history(item) for item in value])
    return {k: _without_history(v) for k, v in value.items()} if type(value) is dict else value


def checkpoint_with_reentrant(function, preserve_rng_state, *args):
    """torch.utils.checkpoint.CheckpointFunction.apply, which saves what enters, as the two halves do.

    NotImplemented: an argument may hold tensors, which backward would differentiate on its own.
    """
    if any(not isinstance(arg, torch.Tensor | int | float | str | None) for arg in args):
        return NotImplemented
    torch_checkpoint.check_backward_validity(args)
    anchors = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.requires_grad]
    if not anchors or not torch.is_grad_enabled():
        with torch.no_grad():
            return function(*args)
    begin_checkpoint(True)
    try:
        results = function(*args)
    finally:
        end_checkpoint()

    def joined(result):
        if not isinstance(result, torch.Tensor):
            return _without_history(result)
        if any(result is arg for arg in args):
            return result.view_as(result)
        differentiable = result.is_floating_point() or result.is_complex()
        return result if result.requires_grad or not differentiable else _Joined.apply(result, anchors[0])

    return tuple([joined(result) for result in results]) if isinstance(results, tuple) else joined(results)


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


def one_hot(tensor, num_classes=-1):
    """torch.nn.functional.one_hot, which looks at the data to say early what scatter_ says of it."""
    if num_classes <= 0:
        return torch.ops.aten.one_hot.default(tensor, num_classes)
    zeros = torch.zeros((*tensor.shape, num_classes), dtype=torch.int64, device=tensor.device)
    return zeros.scatter_(-1, tensor.unsqueeze(-1), 1)


def sources_of_branches(true_fn, false_fn, operands):
    """By branch, what the other one differentiates and it does not: torch.cond gives gradients of zeros for that.

    Both are evaluated on stand-ins, and nothing of it is kept. None: a branch does more than compute, or torch refuses
    the two; outside of a capture, too.
    """


def is_scouted() -> bool:
    """Whether both branches of a torch.cond around are evaluated to see what they are."""
    return False


def scout_branches(true_fn, false_fn, operands):
    """The tensors that each branch gives; NotImplemented for what torch refuses."""
    results = true_fn(*operands), false_fn(*operands)
    if not _are_alike(*results) or _are_among(results, operands):
        return NotImplemented
    return [_tensors_in(result) for result in results]


def _are_alike(a, b):
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.dtype is b.dtype and a.dim() == b.dim() and a.device == b.device
    if type(a) in (tuple, list) and type(b) is type(a):
        return len(a) == len(b) and all(_are_alike(x, y) for x, y in zip(a, b, strict=True))
    if type(a) is dict and type(b) is dict:
        return list(a) == list(b) and all(_are_alike(a[key], b[key]) for key in a)
    return isinstance(a, int) and isinstance(b, int)


def _tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return [tensor for item in items for tensor in _tensors_in(item)]


def _are_among(results, operands):
    given = _tensors_in(operands)
    return any(tensor is other for tensor in _tensors_in(results) for other in given)


def _of_each_tensor(function, a, *others):
    if isinstance(a, torch.Tensor):
        return function(a, *others)
    if type(a) in (tuple, list):
        return type(a)([_of_each_tensor(function, *items) for items in zip(a, *others, strict=True)])
    return {key: _of_each_tensor(function, a[key], *[o[key] for o in others]) for key in a} if type(a) is dict else a


class _Zero(torch.autograd.Function):
    """A zero that has been computed from `sources` as far as autograd knows, with gradients of zeros for them."""

    @staticmethod
    def forward(ctx, like, *sources):
        ctx.sources = [source.detach() for source in sources]
        return torch.zeros((), dtype=like.dtype, device=like.device)

    @staticmethod
    def backward(ctx, gradient):
        return None, *[torch.zeros_like(source) for source in ctx.sources]


def _depending_on(sources, result):
    def one(tensor):
        if not tensor.is_floating_point() and not tensor.is_complex():
            return tensor
        always = torch.ones((), dtype=torch.bool, device=tensor.device)
        return torch.where(always, tensor, _Zero.apply(tensor.detach(), *sources))

    return _of_each_tensor(one, result) if sources else result


def _check_cond(pred, true_fn, false_fn, operands):
    if not isinstance(pred, torch.Tensor):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, tuple | list) or not _holds_tensors(operands):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only "
            f"consists of tensor leaves, but got {operands}."
        )


def _holds_tensors(value):
    if type(value) in (tuple, list):
        return all(_holds_tensors(item) for item in value)
    return all(_holds_tensors(item) for item in value.values()) if type(value) is dict else _is_tensor(value)


def _is_tensor(value):
    return isinstance(value, torch.Tensor)


def cond(pred, true_fn, false_fn, operands=()):
    """torch.cond: which function is called is found out at the break that a branch on data is."""
    if isinstance(pred, bool | int | float | torch.SymBool):
        return true_fn(*operands) if pred else false_fn(*operands)
    _check_cond(pred, true_fn, false_fn, operands)
    if is_scouted():
        results = true_fn(*operands), false_fn(*operands)
        if not _are_alike(*results):
            raise TypeError("branches with results of different kinds")
        return _of_each_tensor(lambda a, b: torch.where(pred.reshape(()).bool(), a, b), *results)
    sources = ((), ())
    if torch.is_grad_enabled():
        sources = sources_of_branches(true_fn, false_fn, operands)
        if sources is None:
            return cond_of_torch(pred, true_fn, false_fn, operands)
    if pred:
        return _depending_on(sources[0], _apart(true_fn(*operands), operands))
    return _depending_on(sources[1], _apart(false_fn(*operands), operands))


def _apart(result, operands):
    """An operand that was written in place comes back as a tensor of its own."""
    given = _tensors_in(operands)
    return _of_each_tensor(lambda t: t.clone() if any(t is other for other in given) else t, result)


def cond_of_torch(pred, true_fn, false_fn, operands):
    """A break: torch compiles both branches in each call, or says what is wrong with them."""
    return ORIGINALS[torch.cond](pred, true_fn, false_fn, operands)


def while_loop(cond_fn, body_fn, carried_inputs):
    """torch.while_loop as torch describes it, on tensors: the branch on data is a break, and all rounds share a region.

    What torch would refuse is left to torch's own.
    """
    if type(carried_inputs) not in (tuple, list) or not all(_is_tensor(item) for item in carried_inputs):
        return while_loop_of_torch(cond_fn, body_fn, carried_inputs)
    carried = carried_inputs
    if is_scouted():
        cond_fn(*carried)
        return body_fn(*carried)
    while True:
        goes_on = cond_fn(*carried)
        if isinstance(goes_on, torch.Tensor) and (goes_on.dim() != 0 or goes_on.dtype is not torch.bool):
            return while_loop_of_torch(cond_fn, body_fn, carried_inputs)
        if not goes_on:
            break
        made = body_fn(*carried)
        if not _may_follow(made, carried):
            return while_loop_of_torch(cond_fn, body_fn, carried_inputs)
        carried = made
    return type(carried)(tensor.clone() for tensor in carried) if carried is carried_inputs else carried


def _may_follow(made, carried):
    if type(made) is not type(carried) or len(made) != len(carried):
        return False
    return all(
        isinstance(new, torch.Tensor)
        and new is not old
        and new.shape == old.shape
        and new.dtype is old.dtype
        and new.device == old.device
        for new, old in zip(made, carried, strict=True)
    )


def while_loop_of_torch(cond_fn, body_fn, carried_inputs):
    """A break: torch compiles the loop anew in each call."""
    return ORIGINALS[torch_while_loop](cond_fn, body_fn, carried_inputs)


_MOST_ROUNDS = 64  # of a loop that becomes part of the graph


def _rounds(tensors):
    """How often a function is called with a part of each tensor; 0: torch refuses, or the graph would be too long."""
    if not tensors or not all(_is_tensor(tensor) and tensor.dim() > 0 for tensor in tensors):
        return 0
    counts = [tensor.shape[0] for tensor in tensors]
    return counts[0] if all(count == counts[0] for count in counts) and counts[0] <= _MOST_ROUNDS else 0


def _stacked(results):
    return _of_each_tensor(lambda *tensors: torch.stack(tensors), *results)


# Before torch 2.12 or so, results of rounds stay along the first dimension.
_SCAN_MOVES_BACK = any(
    {"movedim", "ndim"} <= set(part.co_names)
    for part in torch_scan.__code__.co_consts
    if isinstance(part, types.CodeType)
)


def scan(combine_fn, init, xs, *, dim=0, reverse=False):
    """torch._higher_order_ops.scan: its rounds, one behind another. What torch would refuse is left to torch's own."""
    given, carried = _tensors_in(xs), _tensors_in(init)
    proper = _holds_tensors(init) and _holds_tensors(xs) and carried and type(dim) is int and type(reverse) is bool
    if not proper or not given or not all(-given[0].dim() <= dim < tensor.dim() for tensor in given):
        return scan_of_torch(combine_fn, init, xs, dim=dim, reverse=reverse)
    dim = dim + given[0].dim() if dim < 0 else dim
    parts = _of_each_tensor(lambda tensor: torch.movedim(tensor, dim, 0), xs)
    count, results = _rounds(_tensors_in(parts)), []
    carry = init
    for i in reversed(range(count)) if reverse else range(count):
        part = _of_each_tensor(lambda tensor, i=i: tensor[i], parts)
        made = combine_fn(carry, part)
        if not _is_round(made, carry, part):
            return scan_of_torch(combine_fn, init, xs, dim=dim, reverse=reverse)
        carry, result = made
        results.append(result)
    if not results:
        return scan_of_torch(combine_fn, init, xs, dim=dim, reverse=reverse)
    out = _stacked(results[::-1] if reverse else results)
    if not _SCAN_MOVES_BACK:
        return carry, out
    return carry, _of_each_tensor(lambda tensor: torch.movedim(tensor, 0, dim) if dim < tensor.dim() else tensor, out)


def _is_round(made, carry, part):
    if type(made) not in (tuple, list) or len(made) != 2 or not _holds_tensors(made[1]):
        return False
    if not _are_alike(made[0], carry) or _are_among(made, (carry, part)):
        return False
    pairs = zip(_tensors_in(made[0]), _tensors_in(carry), strict=True)
    return all(new.shape == old.shape for new, old in pairs)


def map_over(f, xs, *args):
    """torch._higher_order_ops.map: a call for each part. What torch would refuse is left to torch's own."""
    count, results = _rounds(_tensors_in(xs)) if _holds_tensors(xs) else 0, []
    for i in range(count):
        part = _of_each_tensor(lambda tensor, i=i: tensor[i], xs)
        results.append(f(part, *args))
        if not _holds_tensors(results[-1]) or _are_among(results[-1], (part, args)):
            return map_of_torch(f, xs, *args)
    return _stacked(results) if results else map_of_torch(f, xs, *args)


def scan_of_torch(combine_fn, init, xs, *, dim=0, reverse=False):
    """A break: torch compiles the function in each call, or says what is wrong with it."""
    return ORIGINALS[torch_scan](combine_fn, init, xs, dim=dim, reverse=reverse)


def map_of_torch(f, xs, *args):
    """The same."""
    return ORIGINALS[torch_map](f, xs, *args)


# Copies of torch's own, in whose place nothing stands.
ORIGINALS = {function: copied(function) for function in (torch.cond, torch_while_loop, torch_scan, torch_map)}
CONTROL_FLOW = {torch.cond: cond, torch_while_loop: while_loop}


def at_one_place(original):
    """What stands in the place of one of these, for one call site: code of its own, which has regions of its own."""
    function = copied(CONTROL_FLOW[original])
    function.__code__ = function.__code__.replace()
    return function


def _upsampling(name):
    """One of torch._C._nn's functions for torch.nn.functional.interpolate, on sizes that vary."""
    operator = getattr(torch.ops.aten, name).default

    def upsampled(input, output_size, *more):
        *how, scales = more
        if output_size is None:
            output_size = [_times(size, scale) for size, scale in zip(input.shape[2:], scales, strict=True)]
        if scales is None:
            scales = [None] * len(output_size)
        return operator(input, output_size, *how, *scales)

    return upsampled


def _times(size, scale):
    """As torch computes it: in doubles, cut off. Powers of two and whole numbers need no number for that."""
    if scale >= 1 and scale == int(scale):
        return size * int(scale)
    if scale in (0.5, 0.25, 0.125):
        return size // int(1 / scale)
    return int(float(size) * scale)


_UPSAMPLING = (
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d "
    "_upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d "
    "_upsample_bilinear2d_aa _upsample_bicubic2d_aa"
).split()


def annotate(annotation_dict):
    """torch.fx.traceback.annotate: notes for torch's own tracers, of which none listens."""
    return contextlib.nullcontext()


# By module and qualified name of the original.
TABLE = {
    "torch.fx.traceback.annotate": annotate,
    "torch._higher_order_ops.scan.scan": scan,
    "torch._higher_order_ops.map.map": map_over,
    "torch._C._nn.one_hot": one_hot,
    **{f"torch._C._nn.{name}": _upsampling(name) for name in _UPSAMPLING},
    "functools.cached_property.__get__": cached_property_get,
    "torch.utils.checkpoint._checkpoint_without_reentrant_generator": checkpoint_without_reentrant,
    f"torch.utils.checkpoint.{_NAME}": checkpoint_without_reentrant_2_14,
    "torch.nn.modules.transformer.TransformerEncoder.forward": encoders.forward,
}
