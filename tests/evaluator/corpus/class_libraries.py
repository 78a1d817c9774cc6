"""Classes that the standard library builds: dataclasses, enums, named tuples, generics."""
# ruff: noqa: E742, F401, F821

import abc
import collections
import dataclasses
import enum
import typing


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

    return (
        Color(1),
        Color["GREEN"].value,
        Color.ALIAS is Color.RED,
        [c.lower() for c in Color],
        F.A | F.B,
        F.A in (F.A | F.B),
    )


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
