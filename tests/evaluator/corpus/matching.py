"""The match statement."""
# ruff: noqa: E742, F401, F821

import collections
import dataclasses


@dataclasses.dataclass
class Point:
    """A class with __match_args__."""

    x: int
    y: int


def _kind(v):
    match v:
        case 0 | 1:
            return "small"
        case int(n) if n > 100:
            return f"big {n}"
        case int():
            return "int"
        case "a" | "b" as letter:
            return f"letter {letter}"
        case str():
            return "str"
        case []:
            return "empty"
        case [x]:
            return f"one {x}"
        case [1, *rest]:
            return f"starts with 1, {rest}"
        case [_, _]:
            return "pair"
        case (first, *_, last):
            return f"{first}..{last}"
        case {"type": "p", "x": x, **rest}:
            return f"p {x} {rest}"
        case {"k": [a, b]}:
            return f"k {a} {b}"
        case {}:
            return "mapping"
        case Point(0, y):
            return f"on axis {y}"
        case Point(x=x, y=y) if x == y:
            return "diagonal"
        case Point():
            return "point"
        case None:
            return "none"
        case True:
            return "true"
        case float() | complex():
            return "number"
        case _:
            return "other"


def case_all_kinds():
    values = [
        0,
        1,
        5,
        500,
        "a",
        "z",
        [],
        [7],
        [1, 2, 3],
        [5, 6],
        (9, 8, 7),
        {"type": "p", "x": 1, "q": 2},
        {"k": [1, 2]},
        {"z": 1},
        Point(0, 3),
        Point(4, 4),
        Point(1, 2),
        None,
        1.5,
        2j,
        {1},
        b"bytes",
        range(3),
        collections.deque([1, 2]),
        True,
    ]
    return [_kind(v) for v in values]


def case_value_patterns():
    class C:
        A = 1
        B = "b"

    def f(v):
        match v:
            case C.A:
                return "A"
            case C.B:
                return "B"
            case -1 | 1.5 | 2 + 3j:
                return "num"
        return None

    return [f(v) for v in (1, "b", -1, 1.5, 2 + 3j, 9)]


def case_class_patterns_builtin():
    def f(v):
        match v:
            case bool(b):
                return ("bool", b)
            case int(i):
                return ("int", i)
            case str(s):
                return ("str", s)
            case list([a, b]):
                return ("list2", a, b)
            case dict({"x": x}):
                return ("dictx", x)
            case tuple(t):
                return ("tuple", t)

    return [f(v) for v in (True, 3, "s", [1, 2], [1], {"x": 9}, (1,))]


def case_too_many_positional():
    match Point(1, 2):
        case Point(1, 2, 3):
            return "no"


def case_too_many_positional_int():
    match 5:
        case int(1, 2):
            return "no"


def case_not_a_class():
    x = 5
    match 5:
        case x():
            return "no"


def case_duplicate_attribute():
    match Point(1, 2):
        case Point(1, x=1):
            return "no"


def case_match_args_wrong():
    class A:
        __match_args__ = ["x"]

    class B:
        __match_args__ = (5,)

    out = []
    for c in (A, B):
        try:
            match c():
                case c(1):
                    pass
        except TypeError as e:
            out.append(str(e))
    return out


def case_missing_attribute():
    class A:
        __match_args__ = ("x", "y")

        def __init__(self):
            self.x = 1

    match A():
        case A(1, 2):
            return "full"
        case A(1):
            return "part"


def case_attribute_raises():
    class A:
        @property
        def x(self):
            raise ValueError("prop")

    match A():
        case A(x=1):
            return 1


def case_mapping_details():
    class M(collections.UserDict):
        pass

    class D(collections.defaultdict):
        pass

    def f(v):
        match v:
            case {"a": 1, "b": b, **rest}:
                return ("ab", b, rest)
            case {"a": a}:
                return ("a", a)
            case {1: x, None: y}:
                return (x, y)
            case {}:
                return "any"

    return [f(v) for v in ({"a": 1, "b": 2, "c": 3}, {"a": 5}, {1: 2, None: 3}, {}, M({"a": 7}), D(int), 5)]


def case_mapping_duplicate_keys():
    class K:
        a = "x"
        b = "x"

    match {"x": 1}:
        case {K.a: 1, K.b: 2}:
            return "no"


def case_nested_patterns():
    def f(v):
        match v:
            case {"points": [Point(x=0), Point(y=yy) as p, *others]}:
                return yy, p, others
            case [[a, [b, *c]], {"d": d}]:
                return a, b, c, d
            case ("cmd", ("go" | "run") as verb, *args):
                return verb, args

    return (
        f({"points": [Point(0, 1), Point(2, 3), 4]}),
        f([[1, [2, 3, 4]], {"d": 5, "e": 6}]),
        f(("cmd", "run", 1, 2)),
        f(["cmd", "x"]),
    )


def case_guard_side_effects():
    log = []

    def g(x):
        log.append(x)
        return x

    match 3:
        case x if g(x) > 5:
            r = "big"
        case x if g(x * 2) > 5:
            r = "double"
        case _:
            r = "none"
    return r, log, x


def case_guard_raises():
    match 3:
        case x if x / 0:
            return 1


def case_bindings_left_behind():
    match [1, 2]:
        case [a, 3]:
            pass
        case [a, b]:
            pass
    return a, b


def case_no_match_falls_through():
    match 5:
        case 6:
            return "six"
        case "x":
            return "x"
    return "through"


def case_sequence_not_str_bytes():
    def f(v):
        match v:
            case [a, b]:
                return "seq"
            case _:
                return "no"

    return [f(v) for v in ("ab", b"ab", bytearray(b"ab"), [1, 2], (1, 2), range(2), {1, 2}, {1: 2, 3: 4}, iter([1, 2]))]


def case_sequence_length_raises():
    class S(collections.abc.Sequence):
        def __len__(self):
            raise ValueError("len")

        def __getitem__(self, i):
            return i

    match S():
        case [a]:
            return 1


def case_star_middle():
    def f(v):
        match v:
            case [a, *mid, z] if len(mid) > 1:
                return a, mid, z
            case [a, *mid]:
                return a, mid
            case [*all_]:
                return all_

    return f([1, 2, 3, 4]), f([1, 2]), f([]), f((1,))


def case_match_in_loop():
    out = []
    for tok in ["push 1", "push 2", "add", "pop", "bad thing here"]:
        match tok.split():
            case ["push", n]:
                out.append(int(n))
            case ["add"]:
                out.append(out.pop() + out.pop())
            case ["pop"]:
                out.pop()
                continue
            case other:
                out.append(len(other))
                break
    return out
