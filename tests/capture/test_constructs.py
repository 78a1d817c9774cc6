"""What people write around tensors, one small program per construct: graphs, breaks and equality with eager."""

import abc
import bisect
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import heapq
import inspect
import itertools
import math
import re
import string
import textwrap
import types
import typing

import pytest
import torch
from judging import check

CALLS = []  # of cached()


def first(k):
    return (torch.linspace(-1, 1, 6).reshape(2, 3) + k,)


@functools.lru_cache(maxsize=None)
def cached(n):
    CALLS.append(n)
    return n * 2


def a_cached_function(x):
    return x * cached(3), len(CALLS)


def signatures(x):
    signature = inspect.signature(lambda a, b=2, *c, d=1, **e: 0)
    bound = signature.bind(x, d=4)
    bound.apply_defaults()
    return bound.arguments["a"] * bound.arguments["d"] + bound.arguments["b"], str(signature)


def type_hints(x):
    class A:
        a: int
        b: typing.Optional[str] = None  # noqa: UP045

    return x * len(typing.get_type_hints(A)), typing.get_origin(list[int]) is list, typing.cast(int, 3)


def regular_expressions(x, s="abc3"):
    match = re.match(r"(?P<l>[a-z]+)(\d)", s)
    found = [m.span() for m in re.finditer("[ac]", s)]
    return x * int(match.group(2)) + match.end("l"), re.sub(r"\d", lambda m: m.group() * 2, s), found, match.groupdict()


def strings(x, s="abc3"):
    parts = [s.title(), f"{s:>8}|{s!r}", s.partition("b"), s.encode().hex(), s.translate(str.maketrans("ab", "xy"))]
    parts += ["%s-%d" % (s, 3), string.Template("$a").substitute(a=s), textwrap.dedent("  a"), s.casefold() == s]  # noqa: UP031
    return x * len(s.upper()), parts


def generators_send_and_throw(x):
    def made(a):
        for i in range(3):
            got = yield a * i
            if got is not None:
                a = a + got

    one = made(x)
    a = next(one)
    b = one.send(x)
    c = one.send(None)
    try:
        one.throw(ValueError("x"))
    except ValueError as error:
        return a + b + c + len(str(error))


def generators_delegate(x):
    def inner():
        got = yield x
        return got * 2

    def outer():
        got = yield from inner()
        yield got

    one = outer()
    next(one)
    return one.send(x + 1)


def exceptions_with_tensors(x):
    class Carrier(Exception):
        def __init__(self, tensor):
            super().__init__("e")
            self.tensor = tensor

    try:
        try:
            raise Carrier(x * 2)
        except Carrier as error:
            raise RuntimeError("b") from error
    except RuntimeError as error:
        return error.__cause__.tensor + 1, str(error)


def exception_groups(x):
    out = []
    try:
        raise ExceptionGroup("g", [ValueError(x), KeyError(x * 2)])
    except* ValueError as group:
        out.append(group.exceptions[0].args[0])
    except* KeyError as group:
        out.append(group.exceptions[0].args[0])
    return out


def context_managers(x):
    @contextlib.contextmanager
    def scaled(k):
        yield x * k

    with scaled(2) as a, contextlib.suppress(ValueError), contextlib.ExitStack() as stack:
        b = stack.enter_context(scaled(3))
        stack.callback(lambda: None)
        raise ValueError
    with contextlib.nullcontext(x) as c:
        pass
    return a + b + c


@dataclasses.dataclass
class Out:
    loss: torch.Tensor
    n: int = 0

    def __post_init__(self):
        self.n += 1


def dataclasses_made(x):
    out = dataclasses.replace(Out(x * 2), n=3)
    return out.loss * out.n, [f.name for f in dataclasses.fields(out)], dataclasses.astuple(Out(1, 2))


def patterns(x):
    def found(value):
        match value:
            case {"a": a, **rest}:
                return a, len(rest)
            case [a, *b]:
                return a, len(b)
            case Out(loss=loss, n=1):
                return loss * 2, 1
            case str() as q if q.startswith("a"):
                return q, 0
            case int(n) | float(n):
                return n, 2
            case _:
                return None, 3

    return [found(value) for value in ({"a": x, "b": 1}, [x, 2, 3], Out(x), "abc", 4, 2.5, None)]


class Vector:
    def __init__(self, t):
        self.t = t

    def __add__(self, other):
        return Vector(self.t + (other.t if isinstance(other, Vector) else other))

    __radd__ = __add__

    def __matmul__(self, other):
        return Vector(self.t @ other.t.t())

    def __iadd__(self, other):
        self.t = self.t + 1
        return self

    def __getitem__(self, i):
        return self.t[i]

    def __len__(self):
        return 2

    def __iter__(self):
        return iter((self.t[0], self.t[1]))

    def __contains__(self, other):
        return other == 3

    def __getattr__(self, name):
        if name == "seven":
            return self.t * 7
        raise AttributeError(name)

    def __format__(self, spec):
        return "vector" + spec

    def __enter__(self):
        return self.t

    def __exit__(self, *error):
        pass

    def __call__(self, k=2):
        return self.t * k

    def __neg__(self):
        return Vector(-self.t)

    def __index__(self):
        return 1


def operators_of_classes(x):
    v = Vector(x)
    w = v + 1 + Vector(x)
    w += 1
    u = 2 + w
    a, b = u
    with u as entered:
        pass
    tensors = [a + b, u[0], u.seven, entered, u(k=3), (-u).t, (v @ v).t]
    return tensors, len(u), 3 in u, f"{u:s}", [1, 2, 3][u], getattr(u, "missing", 5)


class Doubling:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, owner, kind=None):
        return getattr(owner, self.name) * 2

    def __set__(self, owner, value):
        setattr(owner, self.name, value + 1)


class Described:
    d = Doubling()
    __slots__ = ("_d", "s")

    @property
    def p(self):
        return self.d + 1

    @p.setter
    def p(self, value):
        self.d = value


def descriptors(x):
    one = Described()
    one.d = x
    a = one.d
    one.p = x * 3
    one.s = 4
    return a, one.p, one.s


class Cached:
    def __init__(self, x):
        self.x, self.n = x, 0

    @functools.cached_property
    def c(self):
        self.n += 1
        return self.x * 2


def cached_properties(x):
    one = Cached(x)
    return one.c + one.c, one.n


def containers(x):
    d = collections.defaultdict(list)
    d["a"].append(x)
    d["b"]  # noqa: B018
    ordered = collections.OrderedDict(a=x, b=x * 2)
    ordered.move_to_end("a")
    counter = collections.Counter("abca")
    counter.update("a")
    q = collections.deque([x, x + 1], maxlen=2)
    q.appendleft(x * 5)
    q.rotate(1)
    chain = collections.ChainMap({"a": x}, {"b": x * 2})
    user = collections.UserDict(a=x)
    return d["a"][0], list(ordered), ordered.popitem(), counter.most_common(1), q.pop() + q.pop(), chain["b"], user["a"]


class Color(enum.Enum):
    R = 1
    G = 2

    @property
    def twice(self):
        return self.value * 2


class Bits(enum.IntFlag):
    A = 1
    B = 2


def enums(x):
    plain = [Color(2).name, Color["G"] is Color.G, [c.value for c in Color], (Bits.A | Bits.B).value, Bits.B in Bits(3)]
    return x * Color.R.twice, plain, {Color.R: 1}[Color.R]


def iterators(x):
    items = [x, x + 1, x + 2]
    sums = list(itertools.accumulate(items))
    starred = list(itertools.starmap(lambda a, b: a * b, zip(items, [1, 2, 3], strict=True)))
    sliced = list(itertools.islice(itertools.cycle(items), 1, 5))
    pairs = list(itertools.combinations(items, 2))
    groups = [(k, len(list(g))) for k, g in itertools.groupby([1, 1, 2])]
    tensors = [sums[-1], starred[1], sliced[-1], pairs[0][0] + pairs[0][1], functools.reduce(torch.add, items)]
    return (
        tensors,
        groups,
        sorted([3, 1, 2], key=lambda v: -v),
        max(items, key=lambda v: v.shape[0]),
        list(filter(None, [0, 1])),
    )


def copies(x):
    d = {"a": [x, 1], "b": Vector(x)}
    e = copy.copy(d)
    e["c"] = 3
    return len(d), len(e), copy.deepcopy({"a": [1, 2], "n": Color.R}), d["a"][0] * 2


def numbers(x):
    plain = [math.prod([1, 2, 3]), math.gcd(4, 6), math.floor(2.5), divmod(7, 2), pow(2, 5, 7), round(2.567, 2), bin(5)]
    return x * math.sqrt(4), plain, int("12"), float("1e3"), complex(1, 2)


def heaps(x):
    heap, ordered = [3, 1, 2], [1, 3]
    heapq.heapify(heap)
    heapq.heappush(heap, 0)
    bisect.insort(ordered, 2)
    return x * heapq.heappop(heap) + bisect.bisect(ordered, 2), heap, ordered


def abstract_classes(x):
    class A(abc.ABC):
        @abc.abstractmethod
        def f(self): ...

    class B(A):
        def f(self):
            return x * 2

    return (
        B().f(),
        isinstance(B(), A),
        isinstance([], collections.abc.Sequence),
        issubclass(dict, collections.abc.Mapping),
    )


class Named(typing.NamedTuple):
    a: torch.Tensor
    b: int = 2


def named_tuples(x):
    named = Named(x)
    return named.a * named.b, named._fields, named, named._replace(b=3).b


def namespaces(x):
    n = types.SimpleNamespace(a=x, b=2)
    n.c = n.a * n.b
    return n.c, vars(n)["b"], types.MappingProxyType({"a": 1})["a"]


def closures(x):
    n = 0

    def count():
        nonlocal n
        n += 1
        return n

    made = [lambda i=i: x * i for i in range(3)]
    count()
    count()
    return made[2]() + n, [f() for f in made][1]


def inheritance(x):
    class A:
        def f(self):
            return x

        @classmethod
        def c(cls):
            return cls.__name__

        @staticmethod
        def s():
            return 3

    class B(A):
        def f(self):
            return super().f() * 2

        @classmethod
        def c(cls):
            return super().c() + "x"

    class C(B, A):
        pass

    return C().f() * C.s(), C.c(), [k.__name__ for k in C.__mro__]


def partial_functions(x):
    p = functools.partial(torch.add, alpha=2)
    return functools.partial(p, x)(x), p.keywords


def loops_with_else(x):
    out = []
    for i in range(3):
        try:
            if i == 1:
                continue
            out.append(x * i)
        finally:
            out.append(i)
    else:
        out.append("e")
    return out


ONE_GRAPH = [
    a_cached_function,
    signatures,
    type_hints,
    regular_expressions,
    strings,
    generators_send_and_throw,
    generators_delegate,
    exceptions_with_tensors,
    exception_groups,
    context_managers,
    dataclasses_made,
    operators_of_classes,
    descriptors,
    cached_properties,
    containers,
    enums,
    iterators,
    copies,
    numbers,
    heaps,
    abstract_classes,
    named_tuples,
    namespaces,
    closures,
    inheritance,
    partial_functions,
    loops_with_else,
    patterns,
]


@pytest.mark.parametrize("program", ONE_GRAPH, ids=lambda f: f.__name__)
def test_one_graph(program):
    program(*first(0))  # caches of the library are warm
    check(program, first, graphs=1, breaks=0)
