"""Runs a program's text and tells all that it did: results, exceptions, mutation, aliasing, gradients.

Owns the world that a program lives in, made anew for each engine, and the account of a call. Must not judge.
"""

import collections
import contextlib
import dataclasses
import functools
import itertools
import linecache
import time
import types

import torch


class Thing:
    """An object of the program's, with attributes of all kinds."""

    def __init__(self, value):
        self.value, self.count, self.flag, self.log = value, 0, True, []

    def scaled(self, x):
        return x * (self.count + 1)


class Base:
    """What classes of programs derive from."""

    def __init__(self, value):
        self.base = value

    def __len__(self):
        return 2


class Carrier(ValueError):
    """An exception with a tensor."""

    def __init__(self, tensor, *more):
        super().__init__(*more)
        self.tensor = tensor


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: int = 0


Point = collections.namedtuple("Point", "x y")


class Noted:
    """A context manager that notes how it was left."""

    def __init__(self, thing):
        self.thing = thing

    def __enter__(self):
        self.thing.log.append("in")
        return self

    def __exit__(self, kind, error, trace):
        self.thing.log.append("out" if kind is None else kind.__name__)
        return kind is ValueError


class World:
    """A program with its globals and arguments. `grad`: whether `a` requires a gradient; then also rows of it."""

    def __init__(self, text, engine):
        self.names = {
            "torch": torch,
            "functools": functools,
            "contextlib": contextlib,
            "collections": collections,
            "dataclasses": dataclasses,
            "itertools": itertools,
            "time": time,
            "types": types,
            "Base": Base,
            "Carrier": Carrier,
            "Noted": Noted,
            "Pair": Pair,
            "Point": Point,
            "Thing": Thing,
            "SEEN": [],
            "SHARED": {},
        }
        file = f"<random program {hash(text) & 0xFFFFFF}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        exec(compile(text, file, "exec"), self.names)
        self.function = engine(self.names["program"])
        self.thing = Thing(torch.ones(4, 3))
        self.items = [torch.full((4, 3), 0.5), torch.zeros(4, 3)]
        self.table = {"k": torch.ones(4, 3) * 2}

    def call(self, rows, n, grad, seed):
        """One call's account, as nested lists of plain values and tensors."""
        draws = torch.Generator().manual_seed(seed)
        a, b = torch.randn(rows, 3, generator=draws), torch.randn(rows, 3, generator=draws)
        a.requires_grad_(grad)
        if rows != self.thing.value.shape[0]:  # the world has tensors of as many rows
            self.thing.value = torch.ones(rows, 3)
            self.items[:] = [torch.full((rows, 3), 0.5)]
            self.table["k"] = torch.ones(rows, 3) * 2
            self.table.pop("x", None), self.table.pop("y", None)
            vars(self.thing).pop("extra", None)
        try:
            results = self.function(a, b, n, self.items, self.table, self.thing)
            told = ["returned"]
        except Exception as error:
            results, told = (), ["raised", type(error).__name__, str(error)[:60]]
        told.append(self._state([a, b, *results]))
        told.append(self._gradients(a, results))
        self._forget_history()
        return told

    def _state(self, tensors):
        extra = [value for _, value in sorted(vars(self.thing).items())]
        everything = [
            *tensors,
            self.items,
            sorted(self.table.items()),
            extra,
            self.names["SEEN"],
            sorted(self.names["SHARED"].items()),
        ]
        flat = []
        plain = _walk(everything, flat)
        memory = {}
        shared = [memory.setdefault(t.untyped_storage().data_ptr(), len(memory)) for t in flat]
        objects = {}
        same = [objects.setdefault(id(t), len(objects)) for t in flat]
        return [plain, shared, same]

    def _gradients(self, a, results):
        wanting = [t for t in results if isinstance(t, torch.Tensor) and t.requires_grad]
        if not wanting:
            return None
        try:
            sum((t * 1.5).sum() for t in wanting).backward()
        except RuntimeError as error:
            return str(error)[:40]
        return None if a.grad is None else a.grad.detach().clone()

    def _forget_history(self):
        """Tensors that stay in the world lose the graphs of this call, as in a loop of training steps."""
        clean = functools.partial(_detached, {})
        self.items[:] = [clean(item) for item in self.items]
        for holder in (self.table, vars(self.thing), self.names["SHARED"]):
            for key, value in holder.items():
                holder[key] = clean(value)


def _detached(known, value):
    if not isinstance(value, torch.Tensor):
        return value
    return known.setdefault(id(value), (value.detach().clone(), value))[0]


def _walk(value, flat):
    if isinstance(value, torch.Tensor):
        flat.append(value)
        about = [tuple(value.shape), value.dtype, value.requires_grad, value.is_leaf, value._is_view()]
        return ["tensor", about, value.detach().clone()]
    if isinstance(value, list | tuple):
        return [type(value).__name__, *(_walk(item, flat) for item in value)]
    return value
