"""Asks a shape rule with symbolic sizes, then eager where one of the sizes is 1 and the rule's guards hold for that.

Owns the making of those real arguments from the symbolic ones. Must not know any single operator.
"""

import torch
from making import Make
from rules import Call, Translator, eager, ops, overload, without_opaque
from samples import TABLE


def real(value, symbolic, env, sizes):
    """`value` with its symbolic sizes, strides and offset as they are at `sizes`, filled with zeros."""
    if isinstance(value, torch.Tensor):
        shape = [env.at(size, sizes) for size in symbolic.sizes]
        strides = [env.at(stride, sizes) for stride in symbolic.strides]
        reach = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True) if size)
        memory = torch.zeros(value.storage_offset() + reach + 1, dtype=value.dtype, device=value.device)
        return memory.as_strided(shape, strides, value.storage_offset())
    if isinstance(value, (list, tuple)):
        return type(value)(real(a, b, env, sizes) for a, b in zip(value, symbolic, strict=True))
    if isinstance(value, int) and not isinstance(value, bool) and not isinstance(symbolic, int):
        return env.at(symbolic, sizes)
    return value


def describe(name, answer, env, sizes):
    def at(value):
        return env.at(value, sizes)

    tensors = [
        t and (t.dtype, t.device, [at(s) for s in t.sizes], [at(s) for s in t.strides], at(t.offset)) for t in answer[0]
    ]
    return without_opaque(name, tensors), [at(i) for i in answer[1]]


def with_sizes_of_one(name, sample, mode):
    """What rule and eager say of each size that may be 1 by the guards: triples of the call, the rule, eager."""
    translator = Translator(mode)
    schema = overload(name)._schema
    arguments = translator.arguments(schema, sample)
    env = translator.env
    answer = ops.infer(env, name, arguments, "float32")
    if answer is None:
        return
    given = {arg.name: value for arg, value in zip(schema.arguments, arguments, strict=True)}
    for symbol in range(len(env.hints())):
        sizes = [1 if i == symbol else hint for i, hint in enumerate(env.hints())]
        if not env.guards_hold(sizes):
            continue
        try:
            args = tuple(
                real(value, given[arg.name], env, sizes)
                for value, arg in zip(sample.args, schema.arguments)  # noqa: B905: the rest is in kwargs
            )
            kwargs = {key: real(value, given[key], env, sizes) for key, value in sample.kwargs.items()}
        except RuntimeError:
            continue  # strides from elsewhere, which do not fit these sizes
        call = Call(args, kwargs)
        yield call, describe(name, answer, env, sizes), eager(name, call)


def same_places(got, want):
    """Equal but for strides that find no element: of tensors without any, and of a dim of size 1 that was expanded.

    The latter is 0, where eager keeps what it was; what the program sees of a view is put right at a region's end.
    """
    if got is None or want is None or got[:3] != want[:3] or got[4] != want[4]:
        return False
    return 0 in want[2] or all(
        a == b or (size == 1 and a == 0) for size, a, b in zip(want[2], got[3], want[3], strict=True)
    )


def check_ones(name, show):
    """Number of answers, and what was wrong."""
    count, wrong = 0, []
    for generator in TABLE[name]:
        for sample in generator(Make("cpu")):
            for mode in ("duck", "distinct"):
                for call, got, want in with_sizes_of_one(name, sample, mode):
                    count += 1
                    if isinstance(want, Exception):
                        continue  # sizes that do not go together, which the rule leaves to the kernel
                    if got != want and not (
                        len(got[0]) == len(want[0])
                        and got[1] == want[1]
                        and all(a == b or same_places(a, b) for a, b in zip(got[0], want[0], strict=True))
                    ):
                        wrong.append(f"{show(call)}: {mode}: {got}; eager gives {want}")
    return count, wrong
