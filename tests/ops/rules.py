"""Asks a shape rule and eager the same question.

Owns the translation of real torch tensors and arguments into what `graphlift_ops` takes, with constant or symbolic sizes, and the
comparison of the answers. Must not know any single operator.
"""

import re
from dataclasses import dataclass, field

import torch

import graphlift_ops as ops


@dataclass
class Call:
    """One call of an operator: `args` and `kwargs` as for torch.ops. `outside`: the rule may decline it."""

    args: tuple
    kwargs: dict = field(default_factory=dict)
    outside: bool = False


def call(*args, outside=False, **kwargs):
    return Call(args, kwargs, outside)


def overload(name):
    packet, _, which = name.removeprefix("aten::").rpartition(".")
    return getattr(getattr(torch.ops.aten, packet), which)


def dtype_name(dtype):
    return str(dtype).removeprefix("torch.")


class Translator:
    """Turns arguments into the rules' own. `mode`: "constant"; "duck": equal sizes share a symbol; "distinct": none do."""

    def __init__(self, mode):
        self.mode, self.env, self.shared = mode, ops.Env(), {}

    def size(self, value):
        if self.mode == "constant" or value < 2 or value > 1 << 40:
            return value
        if self.mode == "distinct" or value not in self.shared:
            self.shared[value] = self.env.symbol(value)
        return self.shared[value]

    def tensor(self, tensor):
        sizes = [self.size(size) for size in tensor.shape]
        strides = list(tensor.stride())
        text, value = 1, 1
        for dim in sorted(range(tensor.dim()), key=lambda d: (tensor.stride(d), tensor.shape[d] > 1, -d)):
            if strides[dim] != value:
                continue
            strides[dim] = text
            if tensor.shape[dim] > 1:
                text, value = text * sizes[dim], value * tensor.shape[dim]
        device = ops.Device(str(tensor.device))
        return ops.Tensor(dtype_name(tensor.dtype), device, sizes, strides, tensor.storage_offset())

    def argument(self, value, symbolic):
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, (list, tuple)):
            return [self.argument(item, symbolic) for item in value]
        if isinstance(value, torch.dtype):
            return ops.DType(dtype_name(value))
        if isinstance(value, torch.device):
            return ops.Device(str(value))
        if isinstance(value, torch.layout):
            return ops.Layout(0)
        if isinstance(value, torch.memory_format):
            return ops.MemoryFormat(FORMATS[value])
        if symbolic and isinstance(value, int) and not isinstance(value, bool):
            return self.size(value)
        return None if isinstance(value, torch.Generator) else value

    def arguments(self, schema, sample):
        """Every argument of the schema, defaults filled in, in order."""
        symbolic = set(re.findall(r"SymInt\S* (\w+)", str(schema)))
        result = []
        for i, arg in enumerate(schema.arguments):
            if i < len(sample.args):
                value = sample.args[i]
            else:
                value = sample.kwargs.get(arg.name, arg.default_value if arg.has_default_value() else None)
            kind = str(arg.real_type)
            if "List" in kind and isinstance(value, (int, float)):
                value = [value] * (arg.N or 1)
            if kind.endswith("float") and isinstance(value, int):
                value = float(value)
            if "ScalarType" in kind and isinstance(value, int):
                value = NUMBERED[value]
            result.append(self.argument(value, arg.name in symbolic))
        return result


FORMATS = {torch.contiguous_format: 0, torch.preserve_format: 1, torch.channels_last: 2, torch.channels_last_3d: 3}
NUMBERED = {4: torch.int64}


def flat(value):
    """Tensors, None for undefined ones and for ints, in order; and the ints."""
    if isinstance(value, (list, tuple)):
        tensors, ints = [], []
        for item in value:
            more = flat(item)
            tensors += more[0]
            ints += more[1]
        return tensors, ints
    if isinstance(value, int):
        return [None], [value]
    return [value], []


def describe(tensor, is_view):
    if tensor is None:
        return None
    return (
        dtype_name(tensor.dtype),
        str(tensor.device),
        list(tensor.shape),
        list(tensor.stride()),
        tensor.storage_offset() if is_view else 0,
    )


def infer(name, sample, mode):
    """The rule's answer at the hints, or None, and the environment."""
    translator = Translator(mode)
    arguments = translator.arguments(overload(name)._schema, sample)
    answer = ops.infer(translator.env, name, arguments, dtype_name(torch.get_default_dtype()))
    if answer is None:
        return None, translator.env
    hint = translator.env.hint
    tensors = [
        None
        if t is None
        else (t.dtype, t.device, [hint(s) for s in t.sizes], [hint(s) for s in t.strides], hint(t.offset))
        for t in answer[0]
    ]
    return (without_opaque(name, tensors), [hint(i) for i in answer[1]]), translator.env


def takes_number_for_tensor(schema, sample):
    return any(
        isinstance(value, (int, float, complex)) and str(arg.type) == "Tensor"
        for value, arg in zip(sample.args, schema.arguments)
    )


def overlaps_itself(tensor):
    return any(stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape))


def eager(name, sample):
    """What torch really makes of the call, or the exception."""
    operator = overload(name)
    if takes_number_for_tensor(operator._schema, sample):
        # torch.ops takes no number there; the public function makes a wrapped number of it.
        short = name.removeprefix("aten::").partition(".")[0]
        operator, schema = getattr(torch.Tensor if short.endswith("_") else torch, short), operator._schema
    else:
        schema = operator._schema
    with torch.no_grad():
        try:
            result = operator(*sample.args, **sample.kwargs)
        except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError) as error:
            return error
    return answer_of(name, schema, result)


def answer_of(name, schema, result):
    """What a rule would have said, had it given this result."""
    if not schema.returns:
        return [], []
    tensors, ints = flat(result)
    is_view = any(r.alias_info is not None for r in schema.returns) or schema.name in KEEPS_OFFSET
    return without_opaque(name, [describe(tensor, is_view) for tensor in tensors]), ints


def without_opaque(name, described):
    return [None if i == OPAQUE.get(name) else one for i, one in enumerate(described)]


# Results whose size is a library's own: not compared.
OPAQUE = {"aten::mkldnn_rnn_layer.default": 3, "aten::cudnn_batch_norm.default": 3, "aten::_cudnn_rnn.default": 3}

# Aliases whose schema does not say so, and functional forms of writes, which keep self's offset as they keep its strides.
KEEPS_OFFSET = {
    "aten::unsafe_split",
    "aten::unsafe_split_with_sizes",
    "aten::_unsafe_view",
    "aten::lift",
    "aten::copy",
    "aten::slice_scatter",
    "aten::select_scatter",
    "aten::diagonal_scatter",
    "aten::as_strided_scatter",
}
# Errors of kernels, not of types: the compiled call raises them as well.
KERNEL_ERRORS = (
    "not implemented for",
    "not support",
    "out of range",
    "out of bounds",
    "ZeroDivisionError",
    "Could not run",
)
