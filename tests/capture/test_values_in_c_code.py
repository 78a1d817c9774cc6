"""Texts with addresses, values hidden in C objects, forms of types and super objects from outside: guarded, or a break."""

import array
import collections
import datetime
import decimal
import functools
import itertools
import math
import operator
import types
import typing
import weakref

import pytest
from test_identity_in_c_code import Thing, check, filled


def caught(a):
    try:
        raise KeyError(a)
    except KeyError as error:
        return str(error)


def missing(a):
    try:
        return {}[a]
    except KeyError as error:
        return str(error)


ADDRESSES = {
    "repr of a method": lambda a: repr(a.method),
    "f-string of a method": lambda a: f"{a.method}",
    "repr of a set": lambda a: repr({a}),
    "f-string of a set": lambda a: f"{ {a} }",
    "repr of a frozenset": lambda a: repr(frozenset([a])),
    "ascii of a set": lambda a: ascii({a}),
    "str of an exception": lambda a: str(ValueError(a)),
    "repr of an exception": lambda a: repr(ValueError(a)),
    "f-string of an exception": lambda a: f"{ValueError(a)}",
    "caught exception": caught,
    "missing key": missing,
    "format with a keyword": lambda a: "{k}".format(k=a),  # noqa: UP032
    "format with **": lambda a: "{k}".format(**{"k": a}),
    "format_map": lambda a: "{k}".format_map({"k": a}),
    "format of a list": lambda a: "{}".format([a]),  # noqa: UP032
    "format of an attribute": lambda a: "{0.method}".format(a),  # noqa: UP032
    "format()": lambda a: format(a),
    "% of a dict": lambda a: "%(k)s" % {"k": a},  # noqa: UP031
    "% of a tuple": lambda a: "%s %r" % (1, a),  # noqa: UP031
    "% of a method": lambda a: "%s" % a.method,  # noqa: UP031
    "% of a set": lambda a: "%s" % {a},  # noqa: UP031
    "% of bytes": lambda a: b"%a" % a,
    "str.__mod__": lambda a: "%s".__mod__((a,)),
    "join of texts": lambda a: ",".join([repr(a.method)]),
    "repr of a deque": lambda a: repr(collections.deque([a])),
    "repr of a view": lambda a: repr({1: a}.values()),
    "repr of a namespace": lambda a: repr(types.SimpleNamespace(a=a)),
    "repr of a partial": lambda a: repr(functools.partial(a.method)),
    "repr of a slice": lambda a: repr(slice(a)),
    "list.__repr__": lambda a: list.__repr__([a]),
    "__repr__ of a list": lambda a: [a].__repr__(),
    "__str__ of a list": lambda a: [a].__str__(),
    "in a list from outside": lambda a: str(a.v),
}


@pytest.mark.parametrize("name", ADDRESSES)
def test_a_text_with_an_address_is_a_break(name):
    of, calls = ADDRESSES[name], [(Thing([Thing()]),) for _ in range(3)]
    check(
        lambda x, a: (x * 2, of(a)), calls, graphs=1, breaks=None, reason="makes a text with the address of an object"
    )


def test_the_text_of_an_object_that_is_made_inside():
    def program(x):
        made = Thing()
        return x * 2, repr(made).split("object at ")[1].strip(">") == hex(id(made)).lower()

    check(program, [(), ()], graphs=1, breaks=None, reason="makes a text with the address of an object")


def test_a_text_that_only_looks_like_one_is_kept():
    check(
        lambda x, text: (x * 2, f"<{text}>", text.upper(), ",".join([text, text])), [("a at 0x10",), ("b",)], graphs=2
    )


class Failure(Exception):
    pass


day = functools.partial(datetime.datetime, month=1, day=1)
DAYS = [(day(2020), day(2021)), (day(2022), day(2021)), (day(2021), day(2021))]
# What nothing but C code can read has no guard.
HIDDEN = {
    "max": (DAYS, lambda a, b: max([a, b]) is a),
    "sorted": (DAYS, lambda a, b: sorted([a, b])[0] is a),
    "list ==": (DAYS, lambda a, b: [a] == [b]),
    "list <": (DAYS, lambda a, b: [a] < [b]),
    "list.count": (DAYS, lambda a, b: [a].count(b)),
    "in a list": (DAYS, lambda a, b: a in [b]),
    "in a set": (DAYS, lambda a, b: len({a, b})),
    "set()": (DAYS, lambda a, b: len(set([a, b]))),  # noqa: C405
    "keys": (DAYS, lambda a, b: len({a: 1, b: 2})),
    "hash": (DAYS, lambda a, b: hash(a)),
    "hash of a tuple": (DAYS, lambda a, b: hash((a, b))),
    "f-string": (DAYS, lambda a, b: f"{a}"),
    "% of a tuple": (DAYS, lambda a, b: "%s" % (a,)),  # noqa: UP031
    "str of a list": (DAYS, lambda a, b: str([a])),
    "sum": (
        [(decimal.Decimal(1), decimal.Decimal(2)), (decimal.Decimal(3), decimal.Decimal(2))],
        lambda a, b: sum([a, b]),
    ),
    "text of bytes": ([(bytearray(b"a"),), (bytearray(b"b"),)], lambda a: f"{a}"),
    "text of an array": ([(array.array("i", [1]),), (array.array("i", [2]),)], lambda a: f"{a}"),
    "text of a namespace": ([(types.SimpleNamespace(a=1),), (types.SimpleNamespace(a=2),)], lambda a: f"{a}"),
    "f-string of an exception": ([(ValueError(1),), (ValueError(2),)], lambda a: f"{a}"),
    "str of an own exception": ([(Failure(1),), (Failure(2),)], lambda a: str(a)),
    "f-string of an own exception": ([(Failure(1),), (Failure(2),)], lambda a: f"{a}"),
    "% of an own exception": ([(Failure(1),), (Failure(2),)], lambda a: "%s" % a),  # noqa: UP031
    "repr of an own exception in a list": ([(Failure(1),), (Failure(2),)], lambda a: str([a])),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_values_hidden_in_c_objects_are_a_break(name):
    calls, read = HIDDEN[name]
    check(lambda x, *given: (x * 2, read(*given)), calls, graphs=1, breaks=None, reason="on an object of type")


class Int(int):
    pass


class Float(float):
    pass


class Str(str):
    pass


PAIRS = [(Int(1), Int(1)), (Int(4), Int(2)), (Int(2), Int(3))]
FIXED = {
    "max": (PAIRS, lambda a, b: max([a, b])),
    "list ==": (PAIRS, lambda a, b: [a] == [b]),
    "in a list": (PAIRS, lambda a, b: a in [b]),
    "keys": (PAIRS, lambda a, b: len({a: 1, b: 1})),
    "set()": (PAIRS, lambda a, b: len(set([a, b]))),  # noqa: C405
    "str of a list": (PAIRS, lambda a, b: str([a])),
    "hash": (PAIRS, lambda a, b: hash(a)),
    "hash of a tuple": (PAIRS, lambda a, b: hash((a, b))),
    "pow": (PAIRS, lambda a, b: pow(a, 2)),
    "method": (PAIRS, lambda a, b: a.bit_length()),
    "range": (PAIRS, lambda a, b: len(range(a))),
    "index": (PAIRS, lambda a, b: [3, 5, 7, 9, 11][a]),
    "slice": (PAIRS, lambda a, b: len([1, 2, 3, 4, 5][:a])),
    "index from outside": ([([3, 5], Int(0)), ([3, 5], Int(1))], lambda items, a: items[a]),
    "list.__delitem__": (PAIRS, lambda a, b: filled([7, 8, 9, 10, 11, 12], "__delitem__", a)),
    "list.pop": (PAIRS, lambda a, b: [1, 2, 3, 4, 5].pop(a)),
    "list.__getitem__": (PAIRS, lambda a, b: [1, 2, 3, 4, 5].__getitem__(a)),
    "list *": (PAIRS, lambda a, b: [1].__mul__(a)),
    "deque.rotate": (PAIRS, lambda a, b: list(filled(collections.deque([1, 2, 3]), "rotate", a))),
    "deque of a length": (PAIRS, lambda a, b: len(collections.deque([1, 2, 3, 4, 5], a))),
    "islice": (PAIRS, lambda a, b: list(itertools.islice([1, 2, 3, 4, 5], a))),
    "repeat": (PAIRS, lambda a, b: list(itertools.repeat(1, a))),
    "count": (PAIRS, lambda a, b: next(itertools.count(a))),
    "enumerate": (PAIRS, lambda a, b: list(enumerate([1], a))),
    "sum from": (PAIRS, lambda a, b: sum([1], start=a)),
    "format of a width": (PAIRS, lambda a, b: f"{1.5:{a}}"),
    "getattr": ([(Str("real"),), (Str("imag"),)], lambda a: getattr(3, a)),
    "startswith": ([(Str("a"),), (Str("b"),)], lambda a: "abc".startswith((a,))),
    "made again": (PAIRS, lambda a, b: Int(a)),
    "math.sqrt": ([(Float(1.0),), (Float(4.0),)], lambda a: math.sqrt(a)),
    "operator.add": ([(Float(1.0),), (Float(4.0),)], lambda a: operator.add(a, 1)),
    "str.join": ([(Str("a"),), (Str("b"),)], lambda a: ",".join([a, a])),
    "% of a tuple": ([(Str("a"),), (Str("b"),)], lambda a: "%s" % (a,)),  # noqa: UP031
}


@pytest.mark.parametrize("name", FIXED)
def test_numbers_and_texts_of_own_classes_are_fixed(name):
    calls, read = FIXED[name]
    check(lambda x, *given: (x * 2, read(*given)), calls, graphs=len(calls))


def test_what_getters_ask_for():
    calls = [(Int(0), Thing(), Thing()), (Int(1), Thing(), Thing())]
    calls += [(Int(0), calls[0][1], calls[0][1])]

    def program(x, i, a, b):
        picked = operator.itemgetter(1)([3, 5]) + operator.itemgetter(i)([3, 5])
        return x * 2, picked, operator.methodcaller("count", a)([b]), operator.methodcaller("count", 2)([1, 2])

    check(program, calls, graphs=1, breaks=None, reason="operator.")


def test_numbers_of_own_classes_in_tensor_calls():
    check(lambda x, a: x.new_full((2,), a) + x.sum(), [(Float(1.0),), (Float(4.0),)], graphs=2)


T = typing
UNIONS = [(int | str,), (float | str,), (int | str,)]
ALIASES = [(list[int],), (list[str],), (list[int],)]
FORMS = {
    "isinstance": (UNIONS, lambda o: isinstance(3, o)),
    "issubclass": (UNIONS, lambda o: issubclass(int, o)),
    "isinstance of more": (UNIONS, lambda o: isinstance(2, o | bytes)),
    "union ==": (UNIONS, lambda o: o == (int | str)),
    "union in a list": (UNIONS, lambda o: o in [int | str]),
    "union as a key": (UNIONS, lambda o: {int | str: 1, float | str: 2}[o]),
    "union.__args__": (UNIONS, lambda o: o.__args__[0] is int),
    "text of a union": (UNIONS, lambda o: repr(o)),
    "union handed on": (UNIONS, lambda o: [o]),
    "hash of a union": (UNIONS, lambda o: hash(o)),
    "nested": ([(list[int | str],), (list[int | float],)], lambda o: o == list[int | str]),
    "alias ==": (ALIASES, lambda o: o == list[int]),
    "alias in a list": (ALIASES, lambda o: o in [list[int]]),
    "alias.__origin__": ([(list[int],), (set[int],)], lambda o: o.__origin__ is list),
    "text of an alias": (ALIASES, lambda o: f"{o}"),
    "typing.Union": ([(T.Union[int, str],), (T.Union[float, str],)], lambda o: isinstance(3, o)),
    "typing.Union ==": ([(T.Union[int, str],), (T.Union[float, str],)], lambda o: o == T.Union[int, str]),
    "typing.Optional": ([(T.Optional[int],), (T.Optional[str],)], lambda o: o in [T.Optional[int]]),
    "typing.List ==": ([(T.List[int],), (T.List[str],)], lambda o: o == T.List[int]),
    "typing.get_origin": ([(T.List[int],), (T.Set[int],)], lambda o: T.get_origin(o) is list),
    "typing.get_args": ([(T.List[int],), (T.List[str],)], lambda o: T.get_args(o)[0] is int),
    "text of typing": ([(T.List[int],), (T.Set[int],)], lambda o: f"{o}"),
    "typing.Literal": ([(T.Literal[1],), (T.Literal[2],)], lambda o: o == T.Literal[1]),
    "typing.Callable": ([(T.Callable[[int], str],), (T.Callable[[str], str],)], lambda o: o == T.Callable[[int], str]),
    "typing.Any": ([(T.Any,), (T.List,)], lambda o: o is T.Any),
    "typing.TypeVar": ([(T.TypeVar("A"),), (T.TypeVar("B"),)], lambda o: o.__name__),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_types_are_guarded(name):
    calls, read = FORMS[name]
    check(lambda x, o: (x * 2, read(o)), calls, graphs=2)


def test_equal_forms_share_a_region():
    check(lambda x, o: x * (1 + isinstance(3, o)), [(int | str,), (int | str,)], graphs=1)
    check(lambda x, o: x * (1 + (o == list[int])), [(list[int],), (list[int],)], graphs=2)  # and the one before


class Base:
    def number(self):
        return 1


class Middle(Base):
    def number(self):
        return 2


class Low(Middle):
    def __init__(self, v=0):
        self.v = v

    def number(self):
        return 3


SUPERS = {
    "method": lambda s: s.number(),
    "receiver": lambda s: s.__self__.v,
    "class": lambda s: s.__thisclass__ is Low,
    "text": lambda s: repr(s).split(",")[0],
    "f-string": lambda s: f"{s}".split(",")[0],
}


@pytest.mark.parametrize("name", SUPERS)
def test_super_objects_from_outside_are_a_break(name):
    read = SUPERS[name]
    calls = [(super(Low, Low(1)),), (super(Middle, Low(2)),), (super(Low, Low(3)),)]
    check(lambda x, s: (x * 2, read(s)), calls, graphs=1, breaks=None, reason="super")
    check(lambda x, s: (x * 2, read(s[0])), [([s],) for (s,) in calls], graphs=1, breaks=None, reason="super")


def test_a_method_has_its_own_special_methods():
    def program(x, a, method):
        return (
            x * a.method.__call__(),
            method.__call__(),
            (a.method.__eq__(method), a.method.__func__ is method.__func__),
        )

    a, b = Thing(2), Thing(3)
    check(program, [(a, b.method), (b, b.method), (a, a.method)], graphs=1, breaks=None)


def test_a_large_number_that_varies_is_no_symbol():
    check(lambda x, n: (x * 2, n + 1), [(-(2**62) - 5,), (2**62 + 7,), (-(2**63),)], graphs=3)


def test_a_dead_weak_reference():
    dead = weakref.ref(Thing())
    check(lambda x, a: x * (1 + (a() is None)), [(dead,)], graphs=1)
