"""Arguments of many kinds: what a program reads of each is guarded, so that another value gives another result."""

import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import itertools
import math
import operator
import pathlib
import random
import re
import string
import types
import weakref

import pytest
import torch

import graphlift


class E(enum.Enum):
    A = 1
    B = 2


class IE(enum.IntEnum):
    A = 1
    B = 2


class FL(enum.Flag):
    A = 1
    B = 2


class SI(int):
    pass


class SS(str):
    pass


class SF(float):
    pass


class ST(tuple):
    pass


class SD(dict):
    pass


class SL(list):
    pass


class Plain:
    def __init__(self, v):
        self.v = v


class Sl:
    __slots__ = ("v",)

    def __init__(self, v):
        self.v = v


class Eq:
    def __init__(self, v):
        self.v = v

    def __eq__(self, o):
        return self.v == o

    def __hash__(self):
        return hash(self.v)


class Call:
    def __init__(self, v):
        self.v = v

    def __call__(self, x):
        return x * self.v


class Pr:
    def __init__(self, v):
        self._v = v

    @property
    def v(self):
        return self._v


class It:
    def __init__(self, v):
        self.v = v

    def __iter__(self):
        return iter(self.v)


class Ln:
    def __init__(self, v):
        self.v = v

    def __len__(self):
        return self.v

    def __getitem__(self, i):
        return self.v * i


class Bo:
    def __init__(self, v):
        self.v = v

    def __bool__(self):
        return self.v > 1


class Idx:
    def __init__(self, v):
        self.v = v

    def __index__(self):
        return self.v


@dataclasses.dataclass(frozen=True)
class Fz:
    v: int


@dataclasses.dataclass(slots=True)
class Ds:
    v: int


NT = collections.namedtuple("NT", "v w")


def mk(n):
    def c(x):
        return x * n

    return c


def gen(n):
    yield n
    yield n + 1


L = [10, 20, 30, 40]
HOLD = [Plain(1), Plain(4)]

# name -> values that differ in what the program reads of them, and the program.
CASES = {
    "itemgetter": ([lambda: operator.itemgetter(1), lambda: operator.itemgetter(2)], lambda x, o: x * o(L)),
    "attrgetter": (
        [lambda: operator.attrgetter("real"), lambda: operator.attrgetter("imag")],
        lambda x, o: x + o(3 + 4j),
    ),
    "methodcaller": (
        [lambda: operator.methodcaller("count", 2), lambda: operator.methodcaller("index", 2)],
        lambda x, o: x + o([1, 2, 2]),
    ),
    "pattern": ([lambda: re.compile("a"), lambda: re.compile("b+")], lambda x, o: x + len(o.findall("abba"))),
    "match": ([lambda: re.match("a+", "aab"), lambda: re.match("a+", "aaab")], lambda x, o: x + o.end()),
    "range": ([lambda: range(3), lambda: range(5)], lambda x, o: x + sum(o)),
    "slice": ([lambda: slice(0, 1), lambda: slice(1, 3)], lambda x, o: x + sum(L[o])),
    "slice_t": ([lambda: slice(0, 1), lambda: slice(0, 2)], lambda x, o: x[o] + 1),
    "zip": ([lambda: zip([1], [2]), lambda: zip([3], [5])], lambda x, o: x + sum(a * b for a, b in o)),
    "map": ([lambda: map(abs, [1]), lambda: map(abs, [-3])], lambda x, o: x + sum(o)),
    "enumerate": ([lambda: enumerate([1]), lambda: enumerate([4], 2)], lambda x, o: x + sum(a * b for a, b in o)),
    "gen": ([lambda: gen(1), lambda: gen(4)], lambda x, o: x + sum(o)),
    "count": ([lambda: itertools.count(1), lambda: itertools.count(4)], lambda x, o: x + next(o)),
    "cycle": ([lambda: itertools.cycle([1, 2]), lambda: itertools.cycle([4, 5])], lambda x, o: x + next(o)),
    "bytearray": ([lambda: bytearray(b"a"), lambda: bytearray(b"bc")], lambda x, o: x + o[0]),
    "bytes": ([lambda: b"a", lambda: b"bc"], lambda x, o: x + o[0]),
    "memoryview": ([lambda: memoryview(b"a"), lambda: memoryview(b"bc")], lambda x, o: x + o[0]),
    "array": ([lambda: array.array("i", [1]), lambda: array.array("i", [4])], lambda x, o: x + o[0]),
    "decimal": ([lambda: decimal.Decimal(1), lambda: decimal.Decimal(4)], lambda x, o: x + float(o)),
    "fraction": ([lambda: fractions.Fraction(1, 2), lambda: fractions.Fraction(4)], lambda x, o: x + float(o)),
    "date": ([lambda: datetime.date(2020, 1, 1), lambda: datetime.date(2021, 1, 4)], lambda x, o: x + o.day),
    "timedelta": ([lambda: datetime.timedelta(1), lambda: datetime.timedelta(4)], lambda x, o: x + o.days),
    "frozenset": ([lambda: frozenset([1]), lambda: frozenset([1, 2])], lambda x, o: x + len(o)),
    "set": ([lambda: {1}, lambda: {1, 2}], lambda x, o: x + (2 in o)),
    "mappingproxy": (
        [lambda: types.MappingProxyType({1: 2}), lambda: types.MappingProxyType({1: 4})],
        lambda x, o: x + o[1],
    ),
    "chainmap": ([lambda: collections.ChainMap({1: 2}), lambda: collections.ChainMap({1: 4})], lambda x, o: x + o[1]),
    "counter": ([lambda: collections.Counter("a"), lambda: collections.Counter("aab")], lambda x, o: x + o["a"]),
    "ordered": (
        [lambda: collections.OrderedDict(a=1, b=2), lambda: collections.OrderedDict(b=2, a=1)],
        lambda x, o: x + (1 if list(o)[0] == "a" else 5),
    ),
    "dictorder": ([lambda: dict(a=1, b=2), lambda: dict(b=2, a=1)], lambda x, o: x + (1 if list(o)[0] == "a" else 5)),
    "deque": ([lambda: collections.deque([1]), lambda: collections.deque([4, 5])], lambda x, o: x + o[-1]),
    "userdict": ([lambda: collections.UserDict(a=1), lambda: collections.UserDict(a=4)], lambda x, o: x + o["a"]),
    "userlist": ([lambda: collections.UserList([1]), lambda: collections.UserList([4])], lambda x, o: x + o[0]),
    "dictitems": ([lambda: {1: 2}.items(), lambda: {1: 4}.items()], lambda x, o: x + sum(v for k, v in o)),
    "dictkeys": ([lambda: {1: 2}.keys(), lambda: {4: 4}.keys()], lambda x, o: x + sum(o)),
    "ns": ([lambda: types.SimpleNamespace(v=1), lambda: types.SimpleNamespace(v=4)], lambda x, o: x + o.v),
    "partial": ([lambda: functools.partial(pow, 2), lambda: functools.partial(pow, 3)], lambda x, o: x + o(2)),
    "partialkw": (
        [lambda: functools.partial(int, base=2), lambda: functools.partial(int, base=3)],
        lambda x, o: x + o("11"),
    ),
    "lru": ([lambda: functools.lru_cache(mk(2)), lambda: functools.lru_cache(mk(4))], lambda x, o: x + o(3)),
    "closure": ([lambda: mk(2), lambda: mk(4)], lambda x, o: o(x)),
    "lambda_default": ([lambda: lambda x, k=2: x * k, lambda: lambda x, k=4: x * k], lambda x, o: o(x)),
    "enum": ([lambda: E.A, lambda: E.B], lambda x, o: x + o.value),
    "intenum": ([lambda: IE.A, lambda: IE.B], lambda x, o: x + o),
    "flag": ([lambda: FL.A, lambda: FL.A | FL.B], lambda x, o: x + o.value),
    "subint": ([lambda: SI(1), lambda: SI(4)], lambda x, o: x + o),
    "substr": ([lambda: SS("a"), lambda: SS("bb")], lambda x, o: x + len(o)),
    "subfloat": ([lambda: SF(1), lambda: SF(4)], lambda x, o: x + o),
    "subtuple": ([lambda: ST([1]), lambda: ST([4])], lambda x, o: x + o[0]),
    "subdict": ([lambda: SD(a=1), lambda: SD(a=4)], lambda x, o: x + o["a"]),
    "sublist": ([lambda: SL([1]), lambda: SL([4, 5])], lambda x, o: x + len(o)),
    "obj": ([lambda: Plain(1), lambda: Plain(4)], lambda x, o: x + o.v),
    "slots": ([lambda: Sl(1), lambda: Sl(4)], lambda x, o: x + o.v),
    "eq": ([lambda: Eq(1), lambda: Eq(4)], lambda x, o: x + (1 if o == 4 else 7)),
    "eqdict": ([lambda: Eq(1), lambda: Eq(4)], lambda x, o: x + {1: 5, 4: 9}[o]),
    "call": ([lambda: Call(1), lambda: Call(4)], lambda x, o: o(x)),
    "prop": ([lambda: Pr(1), lambda: Pr(4)], lambda x, o: x + o.v),
    "iter": ([lambda: It([1]), lambda: It([4, 5])], lambda x, o: x + sum(o)),
    "len": ([lambda: Ln(1), lambda: Ln(4)], lambda x, o: x + len(o) + o[2]),
    "bool": ([lambda: Bo(1), lambda: Bo(4)], lambda x, o: x + (1 if o else 3)),
    "index": ([lambda: Idx(1), lambda: Idx(3)], lambda x, o: x + L[o]),
    "frozen": ([lambda: Fz(1), lambda: Fz(4)], lambda x, o: x + o.v),
    "dslots": ([lambda: Ds(1), lambda: Ds(4)], lambda x, o: x + o.v),
    "nt": ([lambda: NT(1, 2), lambda: NT(4, 5)], lambda x, o: x + o.v * o.w),
    "boolint": (
        [lambda: True, lambda: 1, lambda: 1.0],
        lambda x, o: x + (5 if o is True else 7 if isinstance(o, int) else 9),
    ),
    "complex": ([lambda: 1 + 2j, lambda: 3 + 4j], lambda x, o: x + o.imag),
    "dtype": ([lambda: torch.float32, lambda: torch.float64], lambda x, o: x.to(o)),
    "device": (
        [lambda: torch.device("cpu"), lambda: torch.device("meta")],
        lambda x, o: x + (1 if o.type == "cpu" else 4),
    ),
    "size": ([lambda: torch.Size([1]), lambda: torch.Size([2])], lambda x, o: x + o.numel()),
    "none": ([lambda: None, lambda: 0], lambda x, o: x + (1 if o is None else 4)),
    "cls": ([lambda: Plain, lambda: Sl], lambda x, o: x + o(3).v + (1 if o is Plain else 2)),
    "negzero": ([lambda: 0.0, lambda: -0.0], lambda x, o: x * math.copysign(1, o)),
    "nan": ([lambda: float("nan"), lambda: 1.0], lambda x, o: x + (1 if o != o else 3)),
    "bigint": ([lambda: 10**30, lambda: 10**30 + 1], lambda x, o: x + (o % 7)),
    "nested": (
        [lambda: {"a": [1, (2, {"b": 3})]}, lambda: {"a": [1, (2, {"b": 5})]}],
        lambda x, o: x + o["a"][1][1]["b"],
    ),
    "list_t": ([lambda: [torch.ones(2)], lambda: [torch.ones(2), torch.ones(2) * 3]], lambda x, o: x + sum(o)),
    "path": ([lambda: pathlib.PurePath("a/b"), lambda: pathlib.PurePath("a/bcd")], lambda x, o: x + len(o.name)),
    "weakref": ([lambda: weakref.ref(HOLD[0]), lambda: weakref.ref(HOLD[1])], lambda x, o: x + o().v),
    "bound": ([lambda: Call(2).__call__, lambda: Call(4).__call__], lambda x, o: o(x)),
    "static": ([lambda: staticmethod(mk(2)), lambda: staticmethod(mk(4))], lambda x, o: o(x)),
    "module": ([lambda: math, lambda: operator], lambda x, o: x + (1 if hasattr(o, "sqrt") else 4)),
    "exc": ([lambda: ValueError(1), lambda: ValueError(4)], lambda x, o: x + o.args[0]),
    "template": (
        [lambda: string.Template("$a"), lambda: string.Template("$a$a")],
        lambda x, o: x + len(o.substitute(a="q")),
    ),
    "random": ([lambda: random.Random(1), lambda: random.Random(4)], lambda x, o: x + o.random()),
    "torchgen": (
        [lambda: torch.Generator().manual_seed(1), lambda: torch.Generator().manual_seed(4)],
        lambda x, o: x + torch.rand(2, generator=o),
    ),
    "reversed": ([lambda: reversed([1, 2]), lambda: reversed([4, 5])], lambda x, o: x + next(o)),
    "filter": ([lambda: filter(None, [1]), lambda: filter(None, [4])], lambda x, o: x + next(o)),
    "super": ([lambda: SL([3, 1]), lambda: SL([5, 4])], lambda x, o: x + sorted(o)[0]),
    "cell": ([lambda: types.CellType(1), lambda: types.CellType(4)], lambda x, o: x + o.cell_contents),
    "method_descr": ([lambda: list.count, lambda: list.index], lambda x, o: x + o([1, 2, 2], 2)),
    "ufunc": ([lambda: torch.sin, lambda: torch.cos], lambda x, o: o(x)),
    "param": (
        [lambda: torch.nn.Parameter(torch.ones(2)), lambda: torch.nn.Parameter(torch.ones(2) * 4)],
        lambda x, o: x * o,
    ),
    "mod": ([lambda: torch.nn.ReLU(), lambda: torch.nn.Hardtanh(0.0, 0.5)], lambda x, o: o(x)),
    "modcfg": ([lambda: torch.nn.LeakyReLU(0.1), lambda: torch.nn.LeakyReLU(0.4)], lambda x, o: o(-x)),
    "gm": (
        [lambda: types.GenericAlias(list, (int,)), lambda: types.GenericAlias(list, (str,))],
        lambda x, o: x + (1 if o.__args__[0] is int else 4),
    ),
}


def alike(a, b):
    return a.dtype == b.dtype and torch.equal(a, b)


@pytest.mark.parametrize("name", CASES)
def test_another_value_gives_another_result(name):
    values, program = CASES[name]
    results = [program(torch.ones(2), value()) for value in values]
    assert not any(alike(a, b) for a, b in itertools.combinations(results, 2)), "nothing to tell apart"
    compiled = graphlift.compile(program)
    for which in (0, 1, 0, 1, 1, 0, 2, 2):
        if which < len(values):
            expected, got = (function(torch.ones(2), values[which]()) for function in (program, compiled))
            torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)
    assert graphlift.graph_count() >= 1
