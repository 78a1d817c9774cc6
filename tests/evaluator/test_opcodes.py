"""The opcode table against the running interpreter: rows and opcodes match both ways; stack effects agree."""

import opcode
import sys

import pytest

import graphlift_evaluator

VERSION = sys.version_info[0] * 100 + sys.version_info[1]
REAL = {name: number for name, number in opcode.opmap.items() if number < 256 and not name.startswith("INSTRUMENTED_")}
ROWS = [row for row in graphlift_evaluator.opcode_table() if row[1] <= VERSION <= row[2]]


def test_every_opcode_has_a_row():
    assert set(REAL) - {name for name, _, _ in ROWS} == set()


def test_every_row_is_an_opcode():
    assert {name for name, _, _ in ROWS} - set(REAL) == set()


def test_rows_of_a_name_do_not_overlap():
    ranges = {}
    for name, since, until in graphlift_evaluator.opcode_table():
        assert 311 <= since <= until
        for other_since, other_until in ranges.setdefault(name, []):
            assert until < other_since or other_until < since, name
        ranges[name].append((since, until))


# What the compiler counts differs from what happens at run time, or the opcode is executed by CPython alone.
BY_COMPILER_ONLY = {
    "FOR_ITER": "the exhausted iterator is popped together with what END_FOR would pop",
    "SEND": "counted as the loop around it",
    "END_FOR": "skipped when the loop ends",
    "RERAISE": "never goes on",
    "RAISE_VARARGS": "never goes on",
    **({"PRECALL": "tested with CALL", "CALL": "tested with PRECALL"} if VERSION == 311 else {}),
    "CLEANUP_THROW": "goes on only when StopIteration ends the delegation",
}
ARGUMENTS = {
    "COMPARE_OP": {311: range(6), 312: [i << 4 for i in range(6)]}.get(VERSION, [i << 5 for i in range(6)]),
    "BINARY_OP": range(26),
    "CALL_INTRINSIC_1": (1, 2, 3, 5, 6),
    "CALL_INTRINSIC_2": (1,),
    "MAKE_FUNCTION": range(16) if VERSION < 313 else (0,),
    "SET_FUNCTION_ATTRIBUTE": (1, 2, 4, 8),
    "LOAD_SUPER_ATTR": range(4),
    "BUILD_SLICE": (2, 3),
    "FORMAT_VALUE": range(8),
    "CALL_FUNCTION_EX": (0, 1),
    "RESUME": range(4),
}


def _effect(number, argument, jump):
    micros = graphlift_evaluator.expand(number, argument, 100)
    if any(name == "LeaveToDefault" for name, *_ in micros):
        return None
    return sum(jumping if jump else straight for _, _, straight, jumping in micros)


def _jumps(name):
    return any(REAL[name] in numbers for numbers in (opcode.hasjrel, opcode.hasjabs, getattr(opcode, "hasjump", [])))


@pytest.mark.parametrize("name", sorted(set(REAL) - set(BY_COMPILER_ONLY) - {"CACHE", "EXTENDED_ARG"}))
def test_stack_effect(name):
    number = REAL[name]
    takes_argument = number in getattr(opcode, "hasarg", ()) or (VERSION < 312 and number >= opcode.HAVE_ARGUMENT)
    for argument in ARGUMENTS.get(name, (1, 2, 3, 5)) if takes_argument else (0,):
        for jump in (False, True) if _jumps(name) else (False,):
            ours = _effect(number, argument, jump)
            if ours is not None:
                theirs = opcode.stack_effect(number, argument if takes_argument else None, jump=jump)
                assert ours == theirs, (argument, jump)


@pytest.mark.skipif(VERSION != 311, reason="only 3.11 has PRECALL")
def test_stack_effect_of_call_in_two_opcodes():
    for argument in (0, 1, 5):
        theirs = sum(opcode.stack_effect(REAL[name], argument) for name in ("PRECALL", "CALL"))
        assert sum(_effect(REAL[name], argument, False) for name in ("PRECALL", "CALL")) == theirs


def test_stack_effects_of_loops():
    for argument in (1, 5):
        assert _effect(REAL["FOR_ITER"], argument, False) == 1
        assert _effect(REAL["FOR_ITER"], argument, True) == -1
    assert _effect(REAL["SEND"], 3, False) == 0
    assert _effect(REAL["SEND"], 3, True) == (-1 if VERSION < 312 else 0)
