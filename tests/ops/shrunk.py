"""Calls of an operator with each of a sample's sizes made 0 or 1, wherever it stands. Must not know any single operator.

Whether such sizes go together is for eager to say.
"""

import re

import torch
from making import Make
from rules import Call, overload
from samples import TABLE


def _sizes(value):
    if isinstance(value, torch.Tensor):
        return set(value.shape)
    if isinstance(value, (list, tuple)):
        return set().union(*map(_sizes, value))
    return set()


def _shrunk(value, size, to, is_size):
    """`value` where `size` became `to`: the first elements of a tensor, laid out as it was."""
    if isinstance(value, torch.Tensor):
        index = tuple(slice(to) if each == size else slice(None) for each in value.shape)
        return value[index].clone()
    if isinstance(value, (list, tuple)):
        return type(value)(_shrunk(item, size, to, is_size) for item in value)
    return to if is_size and value == size and not isinstance(value, (bool, float)) else value


def _calls(name):
    schema = overload(name)._schema
    symbolic = set(re.findall(r"SymInt\S* (\w+)", str(schema)))
    names = [argument.name for argument in schema.arguments]
    for generator in TABLE[name]:
        for sample in generator(Make("cpu")):
            for size in sorted(size for size in _sizes(sample.args) if size > 1):
                for to in (0, 1):
                    args = [_shrunk(a, size, to, n in symbolic) for a, n in zip(sample.args, names)]  # noqa: B905
                    kwargs = {key: _shrunk(a, size, to, key in symbolic) for key, a in sample.kwargs.items()}
                    yield Call(tuple(args), kwargs)


def shrunk(name, most):
    """At most so many, evenly out of all."""
    calls = list(_calls(name))
    return calls[:: max(1, -(-len(calls) // most))]
