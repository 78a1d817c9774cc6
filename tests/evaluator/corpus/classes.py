"""Class statements, attributes, descriptors, super, metaclasses, dataclasses, enums."""

import abc
import collections
import dataclasses
import enum
import typing


def case_simple_class():
    class A:
        """Doc of A."""

        x = 1
        y = x + 1
        z: int = 3
        w: "str"

        def __init__(self, v=0):
            self.v = v

        def get(self):
            return self.v, self.x

    a = A(5)
    a.x = 9
    return a.get(), A.y, A.__doc__, A.__annotations__, A.__qualname__, A.__module__.rsplit(".", 1)[-1]


def case_class_scope_names():
    x = "outer"

    class A:
        y = x
        x = "inner"
        z = x
        f = lambda self: x  # noqa: E731
        w = [x for _ in range(2)]

    return A.y, A.z, A().f(), A.w


def case_class_scope_global_lookup():
    class A:
        print = print
        size = len("abc")
        if size > 2:
            big = True
        for i in range(3):
            pass
        try:
            missing
        except NameError as e:
            why = str(e)
        del size

    return A.big, A.i, A.why, hasattr(A, "size")


def case_class_delete_missing():
    class A:
        del nothing


def case_class_deref():
    x = 1

    class A:
        if x:
            x = 2
        y = x

    return A.y, A.x, x


def case_class_free_variable_unbound():
    def f():
        class A:
            y = later

        later = 1
        return A

    return f()


def case_inheritance_super():
    class A:
        def f(self, x):
            return ["A", x]

    class B(A):
        def f(self, x):
            return ["B", *super().f(x)]

    class C(A):
        def f(self, x):
            return ["C", *super().f(x)]

    class D(B, C):
        def f(self, x):
            return ["D", *super(D, self).f(x)]

    return D().f(1), [k.__name__ for k in D.__mro__]


def case_super_attributes():
    class A:
        attr = 5

        @property
        def p(self):
            return "p"

        @classmethod
        def make(cls):
            return cls.__name__

    class B(A):
        attr = 6

        def go(self):
            return super().attr, super().p, super().make(), super().__init__(), super().__class__

        @classmethod
        def make(cls):
            return "B" + super().make()

    return B().go()[:4], B.make()


def case_super_missing():
    class A:
        def f(self):
            return super().nope

    return A().f()


def case_super_shadowed():
    super = lambda *a: type("S", (), {"f": lambda self: a and "args" or "none"})()  # noqa: A001, E731

    class A:
        def f(self):
            return super().f()

        def g(self):
            return super(A, self).f()

    return A().f(), A().g()


def case_class_cell():
    class A:
        def me(self):
            return __class__

    class B(A):
        pass

    return B().me() is A


def case_property_setter_deleter():
    class A:
        def __init__(self):
            self._v = 0

        @property
        def v(self):
            print("get")
            return self._v

        @v.setter
        def v(self, x):
            print("set", x)
            self._v = x

        @v.deleter
        def v(self):
            print("del")
            self._v = None

    a = A()
    a.v = 3
    a.v += 4
    r = a.v
    del a.v
    return r, a._v


def case_descriptors():
    class D:
        def __set_name__(self, owner, name):
            print("name", owner.__name__, name)

        def __get__(self, obj, cls):
            return obj is None, cls.__name__

        def __set__(self, obj, value):
            print("set", value)

        def __delete__(self, obj):
            print("delete")

    class A:
        d = D()

    a = A()
    a.d = 1
    del a.d
    return a.d, A.d


def case_getattr_hooks():
    class A:
        def __getattr__(self, name):
            if name.startswith("x"):
                return name * 2
            raise AttributeError(f"no {name}")

        def __setattr__(self, name, value):
            print("set", name, value)
            object.__setattr__(self, name, value)

        def __delattr__(self, name):
            print("del", name)

    a = A()
    a.y = 1
    del a.y
    return a.xa, a.y, a.zz


def case_getattribute():
    class A:
        def __getattribute__(self, name):
            return name if name != "real" else object.__getattribute__(self, "__class__").__name__

        def method(self):
            return 1

    a = A()
    return a.anything, a.real, a.method


def case_attribute_errors():
    class A:
        __slots__ = ("x",)

    out = []
    a = A()
    for f in (lambda: a.x, lambda: a.y, lambda: setattr(a, "y", 1), lambda: A.z, lambda: (1).foo, lambda: None.bar):
        try:
            f()
        except AttributeError as e:
            out.append((str(e), e.name))
    return out


def case_store_attr_error():
    x = 5
    x.attr = 1


def case_delete_attr_error():
    class A:
        pass

    del A().x


def case_slots():
    class A:
        __slots__ = ("a", "b")

        def __init__(self):
            self.a = 1

    a = A()
    a.b = 2
    del a.a
    return a.b, hasattr(a, "a"), hasattr(a, "__dict__")


def case_operators_overloaded():
    class V:
        def __init__(self, v):
            self.v = v

        def __add__(self, o):
            return V(self.v + getattr(o, "v", o))

        def __radd__(self, o):
            return V(o + self.v)

        def __iadd__(self, o):
            self.v += 100
            return self

        def __mul__(self, o):
            return NotImplemented

        def __matmul__(self, o):
            return "matmul"

        def __neg__(self):
            return V(-self.v)

        def __invert__(self):
            return "inv"

        def __pos__(self):
            return "pos"

        def __lt__(self, o):
            return self.v < o.v

        def __eq__(self, o):
            return "eq"

        def __hash__(self):
            return 1

        def __contains__(self, x):
            return x

        def __repr__(self):
            return f"V({self.v})"

    a, b = V(1), V(2)
    c = a
    c += 1
    out = [a + b, 3 + a, a @ b, -a, ~a, +a, a < b, b > a, a == b, a != b, 5 in a, 0 in a, c is a]
    try:
        a * b
    except TypeError as e:
        out.append(str(e))
    return out


def case_dunder_methods():
    class A:
        def __len__(self):
            return 3

        def __getitem__(self, k):
            return k

        def __setitem__(self, k, v):
            print("set", k, v)

        def __delitem__(self, k):
            print("del", k)

        def __call__(self, *a):
            return a

        def __format__(self, spec):
            return f"<{spec}>"

        def __index__(self):
            return 2

        def __int__(self):
            return 7

        def __enter__(self):
            return "entered"

        def __exit__(self, *a):
            print(a)

    a = A()
    a[1] = 2
    a[1:2, ...] = 3
    del a["x"]
    with a as e:
        pass
    return len(a), a[5], a[1:2], a[::3], a[1, 2], a(1), f"{a:z}", [10, 20, 30][a], int(a), e


def case_metaclass():
    class M(type):
        def __prepare__(name, bases, **kw):
            print("prepare", name, kw)
            return collections.OrderedDict(pre=1)

        def __new__(mcs, name, bases, ns, **kw):
            print("new", name, sorted(k for k in ns if not k.startswith("__")), kw)
            return super().__new__(mcs, name, bases, dict(ns))

        def __init__(cls, name, bases, ns, **kw):
            super().__init__(name, bases, ns)

        def __call__(cls, *a):
            print("call", a)
            return super().__call__(*a)

        def __instancecheck__(cls, o):
            return o == 5

    class A(metaclass=M, key=3):
        a = 1

        def __init__(self, x):
            self.x = x

    class B(A):
        pass

    return A(2).x, B(3).x, isinstance(5, A), A.pre


def case_init_subclass():
    class A:
        seen = []

        def __init_subclass__(cls, /, tag=None, **kw):
            super().__init_subclass__(**kw)
            cls.seen.append((cls.__name__, tag))

    class B(A, tag=1):
        pass

    class C(B):
        pass

    return A.seen


def case_new_and_init():
    class A:
        def __new__(cls, *a):
            o = super().__new__(cls)
            o.made = a
            return o

        def __init__(self, *a):
            self.args = a

    class T(tuple):
        def __new__(cls, *a):
            return super().__new__(cls, a)

    a = A(1, 2)
    return a.made, a.args, T(1, 2)


def case_class_decorator_and_bases():
    def deco(cls):
        cls.extra = 1
        return cls

    bases = (dict, abc.ABC)

    @deco
    class A(*bases, **{"metaclass": abc.ABCMeta}):
        pass

    return A.extra, A(x=1), A.__mro__[1].__name__


def case_abstract():
    class A(abc.ABC):
        @abc.abstractmethod
        def f(self): ...

    class B(A):
        def f(self):
            return 1

    try:
        A()
    except TypeError as e:
        return B().f(), type(e).__name__


def case_mro_entries():
    class P:
        def __mro_entries__(self, bases):
            print("entries", len(bases))
            return (list,)

    class A(P()):
        pass

    return A.__bases__, len(A.__orig_bases__)


def case_dataclass():
    @dataclasses.dataclass(order=True)
    class P:
        x: int
        y: int = 2
        z: list = dataclasses.field(default_factory=list, compare=False)

        def __post_init__(self):
            self.z.append(self.x)

    @dataclasses.dataclass(frozen=True)
    class Q:
        a: int

    p = P(1)
    try:
        Q(1).a = 2
    except dataclasses.FrozenInstanceError as e:
        err = str(e)
    return p, P(1, 3) > p, p == P(1), dataclasses.asdict(p), dataclasses.replace(p, x=5), hash(Q(1)) == hash(Q(1)), err


def case_enum():
    class Color(enum.Enum):
        RED = 1
        GREEN = enum.auto()
        ALIAS = 1

        def lower(self):
            return self.name.lower()

    class F(enum.Flag):
        A = 1
        B = 2

    return Color(1), Color["GREEN"].value, Color.ALIAS is Color.RED, [c.lower() for c in Color], F.A | F.B, F.A in (F.A | F.B)


def case_namedtuple():
    P = collections.namedtuple("P", "x y", defaults=[5])

    class N(typing.NamedTuple):
        a: int
        b: str = "b"

        def join(self):
            return f"{self.a}{self.b}"

    p = P(1)
    x, y = p
    return p, x, y, p._replace(x=3), N(1).join(), N(2, b="c")


def case_typed_dict_protocol_generic():
    T = typing.TypeVar("T")

    class Box(typing.Generic[T]):
        def __init__(self, v: T):
            self.v = v

    class P(typing.Protocol):
        def f(self) -> int: ...

    return Box[int](3).v, Box.__parameters__, P.__name__


def case_class_body_raises():
    class A:
        x = 1
        y = 1 / 0


def case_build_class_bad_base():
    class A(5):
        pass


def case_nested_classes():
    class A:
        class B:
            class C:
                v = 1

            def f(self):
                return self.C.v

        def g(self):
            return A.B().f()

    return A().g(), A.B.C.__qualname__


def case_private_names():
    class A:
        __x = 1

        def f(self):
            return self.__x

        def __g(self):
            return 2

    return A().f(), A()._A__g(), sorted(k for k in vars(A) if k.startswith("_A"))


def case_del_method():
    class A:
        def __init__(self, n):
            self.n = n

        def __del__(self):
            print("gone", self.n)

    a = A(1)
    a = A(2)
    [A(3)]
    b = a
    del a
    print("still")
    del b
    print("end")


def case_custom_exceptions_and_repr():
    class E(Exception):
        def __init__(self, a):
            super().__init__(a, "more")
            self.a = a

        def __str__(self):
            return f"E<{self.a}>"

    raise E(3)


def case_setattr_loop():
    class O:
        pass

    o = O()
    for i in range(5):
        setattr(o, f"a{i}", i)
        o.last = i
    return vars(o)
