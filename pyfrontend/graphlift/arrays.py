"""What is computed on numpy's arrays while capturing, said in torch's operators on tensors that stand for them.

Owns which of numpy's operators, functions and methods have an equal of torch's, and which dtype their results have:
numpy itself says so, of arrays of ones with one element. Runs outside of the capture, with stand-ins, whose operators
are recorded. NotImplemented: numpy has to compute it. Floating-point warnings of numpy's are not given.
"""

import functools

import numpy as np
import torch

_KINDS = {
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
    torch.int64: np.dtype(np.int64),
    torch.int32: np.dtype(np.int32),
    torch.bool: np.dtype(np.bool_),
}
_DTYPES = {kind: dtype for dtype, kind in _KINDS.items()}


class Refused(Exception):
    """It is no computation that torch does alike."""


class NoData:
    """What lies in the array that a program sees: whoever looks at it breaks the graph."""

    __slots__ = ()

    def _refuse(self, *args):
        raise RuntimeError("graphlift: an array has no data while the program is captured")

    for _name in (
        "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul and rand or "
        "ror xor rxor lshift rlshift rshift rrshift neg pos abs invert eq ne lt le gt ge hash bool int float complex "
        "index repr str format len iter getitem call round divmod rdivmod contains reduce_ex"
    ).split():
        locals()[f"__{_name}__"] = _refuse


def error_state():
    """The context variable that holds what numpy does about floating-point errors; None before numpy 2."""
    return getattr(getattr(getattr(np, "_core", None), "umath", None), "_extobj_contextvar", None)


def errors_are_quiet() -> bool:
    """Whether floating-point errors of numpy's neither raise nor call anything of the program's."""
    return set(np.geterr().values()) <= {"warn", "ignore"}


def placeholder():
    """An object of type numpy.ndarray for the program to hold."""
    array = np.empty((), dtype=object)
    array[()] = NoData()
    return array


def kind(tensor):
    """The dtype of the array that stands on a tensor's memory."""
    return _KINDS.get(tensor.dtype)


def can_be_array(tensor) -> bool:
    """Whether tensor.numpy() gives an array that is followed here. Numbers of numpy's are not."""
    return (
        tensor.dtype in _KINDS
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and tensor.dim() > 0
        and not tensor.requires_grad
    )


def compute(name, args, kwargs):
    """The tensor for the array that numpy's function, method or operator of that name gives, or NotImplemented."""
    rule = _RULES.get(name)
    if rule is None:
        return NotImplemented
    try:
        with torch.no_grad(), np.errstate(all="ignore"):
            result = rule(*args, **kwargs)
    except Refused:
        return NotImplemented
    return result if can_be_array(result) else NotImplemented


def _ones(value):
    """An array as numpy's rules for dtypes see the tensor; other things as they are."""
    if isinstance(value, torch.Tensor):
        _check(can_be_array(value))
        return np.ones((1,) * value.dim(), _KINDS[value.dtype])
    if isinstance(value, list | tuple):
        return [_ones(item) for item in value]
    return value


def _check(fine):
    if not fine:
        raise Refused


def _dtype_of(array):
    _check(isinstance(array, np.ndarray | np.generic) and array.dtype in _DTYPES)
    return _DTYPES[array.dtype]


def _as(value, dtype):
    if isinstance(value, torch.Tensor):
        return value.to(dtype)
    _check(isinstance(value, bool | int | float | np.bool_ | np.integer | np.floating))
    return _KINDS[dtype].type(value).item()  # rounded as numpy's loop would


def _tensor(value, dtype):
    value = _as(value, dtype)
    return value if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=dtype)


def _binary(numpys, torchs, allowed=lambda dtype, a, b: True):
    def rule(a, b):
        dtype = _dtype_of(numpys(_ones(a), _ones(b)))
        _check(allowed(dtype, a, b))
        if isinstance(a, torch.Tensor):
            return torchs(_as(a, dtype), _as(b, dtype)).to(dtype)
        return torchs(_tensor(a, dtype), _as(b, dtype)).to(dtype)

    return rule


def _compare(numpys, torchs):
    def rule(a, b):
        x, y = _ones(a), _ones(b)
        _check(_dtype_of(numpys(x, y)) is torch.bool)
        kind = np.result_type(x, y)
        _check(kind in _DTYPES)
        return torchs(_tensor(a, _DTYPES[kind]), _tensor(b, _DTYPES[kind]))

    return rule


def _unary(numpys, torchs, kinds="fib"):
    def rule(a):
        _check(_KINDS[a.dtype].kind in kinds)
        dtype = _dtype_of(numpys(_ones(a)))
        return torchs(a.to(dtype))

    return rule


def _is_float(dtype, a, b):
    return dtype.is_floating_point


def _divides(dtype, a, b):
    """Division by zero is an error of torch's, and the least integer by -1 is nobody's."""
    return dtype.is_floating_point or (dtype is not torch.bool and type(b) is int and b not in (0, -1))


def _raises(dtype, a, b):
    return dtype.is_floating_point or (dtype is not torch.bool and type(b) is int and b >= 0)


def _is_whole(dtype, a, b):
    return not dtype.is_floating_point


def _matmul(a, b):
    _check(isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and a.dim() + b.dim() > 2)
    dtype = _dtype_of(np.matmul(_ones(a), _ones(b)))
    _check(dtype is not torch.bool)
    return torch.matmul(a.to(dtype), b.to(dtype))


def _dot(a, b):
    _check(isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and max(a.dim(), b.dim()) <= 2)
    return _matmul(a, b)


def _where(condition, a, b):
    _check(isinstance(condition, torch.Tensor) and condition.dtype is torch.bool)
    dtype = _dtype_of(np.where(_ones(condition), _ones(a), _ones(b)))
    return torch.where(condition, _tensor(a, dtype), _tensor(b, dtype))


def _axes(tensor, axis):
    _check(axis is None or type(axis) is int or (type(axis) is tuple and all(type(item) is int for item in axis)))
    return list(range(tensor.dim())) if axis is None else [axis] if type(axis) is int else list(axis)


def _reduction(numpys, torchs):
    def rule(a, axis=None, *, keepdims=False):
        _check(isinstance(a, torch.Tensor) and type(keepdims) is bool)
        dims = _axes(a, axis)
        _check(dims and (keepdims or len(dims) < a.dim()))
        dtype = _dtype_of(numpys(_ones(a), axis=axis, keepdims=keepdims))
        return torchs(a, dims, keepdims, dtype)

    return rule


def _sum(a, dims, keepdims, dtype):
    return torch.sum(a, dims, keepdims, dtype=dtype)


def _mean(a, dims, keepdims, dtype):
    return torch.mean(a.to(dtype), dims, keepdims)


def _joined(numpys, torchs):
    def rule(arrays, axis=0):
        _check(isinstance(arrays, list | tuple) and all(isinstance(item, torch.Tensor) for item in arrays))
        _check(type(axis) is int and arrays)
        dtype = _dtype_of(numpys(_ones(arrays), axis=axis))
        return torchs([array.to(dtype) for array in arrays], axis)

    return rule


def _reshape(a, *shape):
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    _check(all(type(size) is int for size in sizes))
    return a.reshape(sizes)


def _reshape_function(a, shape):
    return _reshape(a, shape)


def _transpose(a, *axes):
    axes = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple)) else axes
    axes = tuple(reversed(range(a.dim()))) if not axes else axes
    _check(len(axes) == a.dim() and all(type(axis) is int for axis in axes))
    return a.permute(axes)


def _astype(a, kind):
    kind = np.dtype(kind)
    _check(kind in _DTYPES)
    _check(kind.kind in "fb" or _KINDS[a.dtype].kind != "f")  # what has no whole number is made by chance
    return a.to(_DTYPES[kind], copy=True)


def _copy(a):
    return a.clone(memory_format=torch.contiguous_format)


def _is_index(key):
    if isinstance(key, slice):
        whole = all(part is None or type(part) is int for part in (key.start, key.stop, key.step))
        return whole and (key.step is None or key.step > 0)
    return key is None or key is Ellipsis or type(key) is int


def _getitem(a, key):
    _check(all(_is_index(part) for part in (key if isinstance(key, tuple) else (key,))))
    return a[key]


_ARITHMETIC = {
    "add": _binary(np.add, torch.add),
    "sub": _binary(np.subtract, torch.sub),
    "mul": _binary(np.multiply, torch.mul),
    "truediv": _binary(np.true_divide, torch.div),
    "floordiv": _binary(np.floor_divide, torch.floor_divide, _divides),
    "mod": _binary(np.remainder, torch.remainder, _divides),
    "pow": _binary(np.power, torch.pow, _raises),
    "and_": _binary(np.bitwise_and, torch.bitwise_and, _is_whole),
    "or_": _binary(np.bitwise_or, torch.bitwise_or, _is_whole),
    "xor": _binary(np.bitwise_xor, torch.bitwise_xor, _is_whole),
    "matmul": _matmul,
    "lt": _compare(np.less, torch.lt),
    "le": _compare(np.less_equal, torch.le),
    "eq": _compare(np.equal, torch.eq),
    "ne": _compare(np.not_equal, torch.ne),
    "gt": _compare(np.greater, torch.gt),
    "ge": _compare(np.greater_equal, torch.ge),
    "neg": _unary(np.negative, torch.neg, "fi"),
    "abs": _unary(np.absolute, torch.abs, "fi"),
    "invert": _unary(np.invert, torch.bitwise_not, "ib"),
    "getitem": _getitem,
}


def _maximum(torchs):
    return lambda a, b: torchs(a, b if isinstance(b, torch.Tensor) else torch.tensor(b, dtype=a.dtype))


_FUNCTIONS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "truediv",
    "true_divide": "truediv",
    "floor_divide": "floordiv",
    "remainder": "mod",
    "mod": "mod",
    "power": "pow",
    "matmul": "matmul",
    "negative": "neg",
    "absolute": "abs",
    "abs": "abs",
    "less": "lt",
    "less_equal": "le",
    "equal": "eq",
    "not_equal": "ne",
    "greater": "gt",
    "greater_equal": "ge",
}

_REDUCTIONS = {
    "sum": _reduction(np.sum, _sum),
    "mean": _reduction(np.mean, _mean),
    "max": _reduction(np.max, lambda a, dims, keepdims, dtype: torch.amax(a, dims, keepdims)),
    "min": _reduction(np.min, lambda a, dims, keepdims, dtype: torch.amin(a, dims, keepdims)),
}

# Operators by the names of Python's `operator`; functions behind "numpy.", methods behind "ndarray.".
_RULES = {
    **_ARITHMETIC,
    **{f"numpy.{name}": _ARITHMETIC[same] for name, same in _FUNCTIONS.items()},
    **{
        f"numpy.{name}": _unary(getattr(np, name), getattr(torch, name))
        for name in ("exp", "log", "sqrt", "sin", "cos", "tanh")
    },
    "numpy.maximum": _binary(np.maximum, _maximum(torch.maximum)),
    "numpy.minimum": _binary(np.minimum, _maximum(torch.minimum)),
    "numpy.where": _where,
    "numpy.concatenate": _joined(np.concatenate, torch.cat),
    "numpy.stack": _joined(np.stack, torch.stack),
    "numpy.dot": _dot,
    "numpy.reshape": _reshape_function,
    "numpy.transpose": _transpose,
    **{f"numpy.{name}": rule for name, rule in _REDUCTIONS.items()},
    "numpy.amax": _REDUCTIONS["max"],
    "numpy.amin": _REDUCTIONS["min"],
    **{f"ndarray.{name}": rule for name, rule in _REDUCTIONS.items()},
    "ndarray.reshape": _reshape,
    "ndarray.transpose": _transpose,
    "ndarray.astype": _astype,
    "ndarray.copy": _copy,
    "ndarray.dot": _dot,
}


@functools.cache
def function_names():
    """By function of numpy's, its name here."""
    return {getattr(np, name[6:]): name for name in _RULES if name.startswith("numpy.")}


@functools.cache
def method_names():
    """Methods of arrays that are followed."""
    return tuple(name[8:] for name in _RULES if name.startswith("ndarray."))
