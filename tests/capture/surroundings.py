"""Programs with Python objects around them, and what changes those between calls. Owns the table; tests run it."""

import array
import collections
import contextvars
import functools
import io
import itertools
import queue
import random
import threading
import types
import weakref


class Plain:
    k = 1

    def __init__(self, v):
        self.v = v

    def m(self, x):
        return x * self.v


class D(dict):
    def __missing__(self, k):
        return 7


class G:
    def __init__(self):
        self.d = {"v": 1}

    def __getattr__(self, n):
        try:
            return self.__dict__["d"][n]
        except KeyError:
            raise AttributeError(n) from None


class GA:
    def __init__(self):
        object.__setattr__(self, "d", {"v": 1})

    def __getattribute__(self, n):
        if n == "v":
            return object.__getattribute__(self, "d")["v"]
        return object.__getattribute__(self, n)


class De:
    def __get__(self, o, t=None):
        return o.__dict__.get("_v", 1) * self.f

    def __set__(self, o, v):
        o.__dict__["_v"] = v

    f = 1


class HD:
    v = De()


class M(type):
    @property
    def mp(c):
        return c.q


class MC(metaclass=M):
    q = 1


def mk():
    n = 1

    def f(x):
        return x * n

    def store(v):
        nonlocal n
        n = v

    return f, store


def dflt(x, k=1):
    return x * k


def kwd(x, *, k=1):
    return x * k


GLOB = 1
GL = [1]


def fg(x):
    return x * GLOB


def setglob(v):
    global GLOB
    GLOB = v


CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


# Each makes a program of one argument, and what changes its surroundings for the i-th time.
@case
def lst():
    row = [1]
    return (lambda x: x + row[0]), (lambda i: row.__setitem__(0, i))


@case
def lstlen():
    row = [1]
    return (lambda x: x + len(row)), (lambda i: row.append(i))


@case
def dic():
    d = {"a": 1}
    return (lambda x: x + d["a"]), (lambda i: d.update(a=i))


@case
def dicnew():
    d = {"a": 1}
    return (lambda x: x + d.get("b", 0)), (lambda i: d.update(b=i))


@case
def dicin():
    d = {"a": 1}
    return (lambda x: x + (1 if "b" in d else 0)), (lambda i: d.update(b=i))


@case
def dicdel():
    d = {"a": 1, "b": 2}
    return (lambda x: x + len(d)), (lambda i: d.pop("b", 0))


@case
def dq():
    d = collections.deque([1, 2, 3])
    return (lambda x: x + d[0]), (lambda i: d.rotate(1))


@case
def st():
    s = {1}
    return (lambda x: x + len(s)), (lambda i: s.add(i))


@case
def stin():
    s = {1}
    return (lambda x: x + (2 in s)), (lambda i: s.add(2))


@case
def ba():
    b = bytearray(b"a")
    return (lambda x: x + b[0]), (lambda i: b.__setitem__(0, i))


@case
def arr():
    b = array.array("i", [1])
    return (lambda x: x + b[0]), (lambda i: b.__setitem__(0, i))


@case
def attr():
    o = Plain(1)
    return (lambda x: x + o.v), (lambda i: setattr(o, "v", i))


@case
def clsattr():
    o = Plain(1)
    return (lambda x: x + o.k), (lambda i: setattr(Plain, "k", i))


@case
def shadowcls():
    o = Plain(1)
    return (lambda x: x + o.k), (lambda i: o.__dict__.update(k=i))


@case
def meth():
    o = Plain(1)
    return (lambda x: o.m(x)), (lambda i: setattr(o, "m", lambda x, i=i: x + i))


@case
def methcls():
    class Q(Plain):
        pass

    o = Q(2)
    return (lambda x: o.m(x)), (lambda i: setattr(Q, "m", lambda s, x, i=i: x + i))


@case
def boundm():
    o = Plain(1)
    b = o.m
    return (lambda x: b(x)), (lambda i: setattr(o, "v", i))


@case
def chgcls():
    class A:
        def f(self):
            return 1

    class B:
        def f(self):
            return 5

    o = A()
    return (lambda x: x + o.f()), (lambda i: setattr(o, "__class__", B))


@case
def isinst():
    class A:
        pass

    class B:
        pass

    o = A()
    return (lambda x: x + isinstance(o, B)), (lambda i: setattr(o, "__class__", B))


@case
def hasat():
    o = Plain(1)
    return (lambda x: x + hasattr(o, "zz")), (lambda i: setattr(o, "zz", i))


@case
def delat():
    o = Plain(1)
    return (lambda x: x + getattr(o, "v", 9)), (lambda i: o.__dict__.pop("v", 0))


@case
def ga():
    g = G()
    return (lambda x: x + g.v), (lambda i: g.d.update(v=i))


@case
def gaa():
    g = GA()
    return (lambda x: x + g.v), (lambda i: g.d.update(v=i))


@case
def desc():
    h = HD()
    return (lambda x: x + h.v), (lambda i: setattr(h, "v", i))


@case
def descf():
    h = HD()
    return (lambda x: x + h.v), (lambda i: setattr(De, "f", i))


@case
def metaprop():
    return (lambda x: x + MC.mp), (lambda i: setattr(MC, "q", i))


@case
def clos():
    f, s = mk()
    return f, s


@case
def deflt():
    return dflt, (lambda i: setattr(dflt, "__defaults__", (i,)))


@case
def kwdef():
    return kwd, (lambda i: setattr(kwd, "__kwdefaults__", {"k": i}))


@case
def kwdef2():
    def k2(x, *, k=1):
        return x * k

    return (lambda x: k2(x)), (lambda i: k2.__kwdefaults__.update(k=i))


@case
def innerdef():
    def g(x, k=1):
        return x * k

    return (lambda x: g(x)), (lambda i: setattr(g, "__defaults__", (i,)))


@case
def codeswap():
    def g(x):
        return x + 1

    def h(x):
        return x + 9

    return (lambda x: g(x)), (lambda i: setattr(g, "__code__", h.__code__))


@case
def glob():
    return fg, setglob


@case
def globl():
    return (lambda x: x + GL[0]), (lambda i: GL.__setitem__(0, i))


@case
def part():
    row = [1]
    p = functools.partial(lambda a, x: x + a[0], row)
    return (lambda x: p(x)), (lambda i: row.__setitem__(0, i))


@case
def partkw():
    p = functools.partial(lambda x, k: x + k, k=1)
    return (lambda x: p(x)), (lambda i: p.keywords.update(k=i))


@case
def iterp():
    it = iter([1, 2, 3, 4, 5, 6])
    return (lambda x: x + next(it)), (lambda i: next(it))


@case
def genp():
    def g():
        for i in range(50):
            yield i

    it = g()
    return (lambda x: x + next(it)), (lambda i: next(it))


@case
def cnt():
    c = itertools.count()
    return (lambda x: x + next(c)), (lambda i: next(c))


@case
def rng():
    r = random.Random(0)
    return (lambda x: x + r.random()), (lambda i: r.seed(i))


@case
def ns():
    n = types.SimpleNamespace(v=1)
    return (lambda x: x + n.v), (lambda i: setattr(n, "v", i))


@case
def udict():
    n = collections.UserDict(v=1)
    return (lambda x: x + n["v"]), (lambda i: n.update(v=i))


@case
def ddict():
    n = collections.defaultdict(lambda: 3)
    return (lambda x: x + n["v"]), (lambda i: n.update(v=i))


@case
def miss():
    n = D()
    return (lambda x: x + n["v"]), (lambda i: n.update(v=i))


@case
def chain():
    a = {}
    b = {"v": 1}
    c = collections.ChainMap(a, b)
    return (lambda x: x + c["v"]), (lambda i: a.update(v=i))


@case
def mproxy():
    a = {"v": 1}
    p = types.MappingProxyType(a)
    return (lambda x: x + p["v"]), (lambda i: a.update(v=i))


@case
def dview():
    a = {"v": 1}
    p = a.values()
    return (lambda x: x + sum(p)), (lambda i: a.update(v=i))


@case
def lru():
    z = [1]

    @functools.lru_cache
    def f(n):
        return n * z[0]

    return (lambda x: x + f(2)), (lambda i: (z.__setitem__(0, i), f.cache_clear()))


@case
def wref():
    o = Plain(1)
    r = weakref.ref(o)
    h = [o]
    return (lambda x: x + r().v), (lambda i: setattr(h[0], "v", i))


@case
def wvd():
    o = Plain(1)
    w = weakref.WeakValueDictionary(a=o)
    h = [o]
    return (lambda x: x + w["a"].v), (lambda i: setattr(h[0], "v", i))


@case
def tls():
    t = threading.local()
    t.v = 1
    return (lambda x: x + t.v), (lambda i: setattr(t, "v", i))


@case
def cv():
    c = contextvars.ContextVar("c", default=1)
    return (lambda x: x + c.get()), (lambda i: c.set(i))


@case
def sio():
    s = io.StringIO("abc")
    return (lambda x: x + len(s.read(1))), (lambda i: s.read(1))


@case
def qq():
    q = queue.Queue()
    [q.put(i) for i in range(30)]
    return (lambda x: x + q.get()), (lambda i: q.get())


def restore():
    """What programs of the table share is as it was."""
    Plain.k, De.f, MC.q, GL[0] = 1, 1, 1, 1
    setglob(1)
    dflt.__defaults__, kwd.__kwdefaults__ = (1,), {"k": 1}
