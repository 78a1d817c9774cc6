"""Decoding, exception tables and liveness against dis and against what can be seen by reading."""

import dis
import pkgutil
import sys

import corpus
import pytest

import graphlift_evaluator as ge

VERSION = sys.version_info[:2]


def _codes():
    import importlib
    import types

    todo = []
    for info in pkgutil.iter_modules(corpus.__path__):
        module = importlib.import_module(f"corpus.{info.name}")
        todo += [f.__code__ for f in vars(module).values() if isinstance(f, types.FunctionType)]
    import argparse
    import dataclasses
    import typing

    for module in (dis, argparse, dataclasses, typing):
        todo += [f.__code__ for f in vars(module).values() if isinstance(f, types.FunctionType)]
    found = []
    while todo:
        code = todo.pop()
        found.append(code)
        todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return found


CODES = _codes()
JOINED = {"KW_NAMES", "PRECALL", "CALL"}


def test_same_instructions_as_dis():
    for code in CODES:
        expected = [
            (i.offset // 2, i.opname, i.arg or 0)
            for i in dis.get_instructions(code)
            if i.opname not in ("EXTENDED_ARG", "CACHE")
        ]
        ours = {own: (name, arg) for _, own, _, name, arg in ge.decode(code)}
        joined = {unit for unit, name, _ in expected if name in JOINED} - set(ours)
        for unit, name, arg in expected:
            if unit not in joined:
                assert ours[unit] == (name, arg), (code.co_name, unit)
        assert set(ours) <= {unit for unit, _, _ in expected}


def test_instructions_cover_the_code():
    for code in CODES:
        at = 0
        for unit, own, after, _, _ in ge.decode(code):
            assert unit == at and unit <= own < after
            at = after
        assert at == len(code.co_code) // 2


def test_keyword_calls_are_one_instruction():
    if VERSION >= (3, 13):
        pytest.skip("names are on the stack")
    code = (lambda f: f(1, a=2)).__code__
    names = [name for *_, name, _ in ge.decode(code)]
    assert "KW_NAMES" not in names and "CALL" in names
    unit, own, *_ = next(i for i in ge.decode(code) if i[3] == "CALL")
    assert unit < own


def test_exception_tables_as_dis_reads_them():
    parse = getattr(dis, "_parse_exception_table", None)
    if parse is None:
        pytest.skip("dis does not show its parser")
    entries = 0
    for code in CODES:
        expected = [(e.start // 2, e.end // 2, e.target // 2, e.depth, e.lasti) for e in parse(code)]
        assert ge.handlers(code) == expected
        entries += len(expected)
    assert entries > 100


def _unit_of_line(code, offset):
    line = code.co_firstlineno + offset
    return next(i.offset // 2 for i in dis.get_instructions(code) if i.positions.lineno == line)


def test_live_straight_line():
    def f(a, b):
        c = a + 1
        d = b + c
        return d

    code = f.__code__
    assert ge.live_at(code, 0) == ["a", "b"]
    assert ge.live_at(code, _unit_of_line(code, 2)) == ["b", "c"]
    assert ge.live_at(code, _unit_of_line(code, 3)) == ["d"]


def test_live_over_branches_and_loops():
    def f(n, xs, unused):
        total = 0
        for x in xs:
            if x > n:
                total += x
        return total

    code = f.__code__
    assert ge.live_at(code, 0) == ["n", "xs"]
    assert ge.live_at(code, _unit_of_line(code, 3)) == ["n", "x", "total"] or set(
        ge.live_at(code, _unit_of_line(code, 3))
    ) == {"n", "x", "total"}
    assert ge.live_at(code, _unit_of_line(code, 5)) == ["total"]


def test_live_in_handlers():
    def f(a, b, g):
        try:
            a = g(1)
        except ValueError:
            return b
        return a

    code = f.__code__
    assert set(ge.live_at(code, _unit_of_line(code, 2))) == {"b", "g"}
    assert ge.live_at(code, _unit_of_line(code, 5)) == ["a"]


def test_live_overwritten_in_try_is_live_for_handler():
    def f(a, g):
        try:
            a = g()
        finally:
            print(a)

    assert set(ge.live_at(f.__code__, _unit_of_line(f.__code__, 2))) == {"a", "g"}


def test_live_cells_and_free_variables():
    def f(a, b):
        def g():
            return a

        b = 1
        return g

    code = f.__code__
    unit = _unit_of_line(code, 4)
    assert ge.live_at(code, unit) == ["g"]
    inner = next(c for c in code.co_consts if hasattr(c, "co_code"))
    assert "a" in ge.live_at(inner, len(ge.decode(inner)) and ge.decode(inner)[1][0])


def test_live_delete_counts_as_use():
    def f(a):
        del a

    assert ge.live_at(f.__code__, _unit_of_line(f.__code__, 1)) == ["a"]
