"""Each written function does the same in our evaluator as in CPython's: whole, step by step, and left at every instruction."""

import importlib
import pkgutil
import sys

import corpus
import graphlift_evaluator
import pytest
from comparing import all_codes, evaluated, leaving_after, observe, stepping, stopping


def _cases():
    for info in pkgutil.iter_modules(corpus.__path__):
        since = int(info.name.rsplit("_", 1)[1]) if info.name.rsplit("_", 1)[-1].isdigit() else 311
        if sys.version_info[0] * 100 + sys.version_info[1] < since:
            continue
        module = importlib.import_module(f"corpus.{info.name}")
        for name, value in vars(module).items():
            if name.startswith("case_") and callable(value):
                yield pytest.param(value, id=f"{info.name}-{name[5:]}")


CASES = list(_cases())


@pytest.mark.parametrize("case", CASES)
def test_same_as_cpython(case):
    expected = observe(case)
    before = graphlift_evaluator.counters()["instructions"]
    assert observe(evaluated(case)) == expected
    assert graphlift_evaluator.counters()["instructions"] > before
    assert observe(case) == expected  # nothing was left behind
    assert not graphlift_evaluator.hook_installed()


@pytest.mark.parametrize("case", CASES)
def test_same_step_by_step(case):
    expected = observe(case)
    assert observe(stepping(case)) == expected


@pytest.mark.parametrize("case", CASES)
def test_left_at_every_instruction(case):
    expected = observe(case)
    for code in all_codes(case):
        for unit, *_ in graphlift_evaluator.decode(code):
            for skip in (0, 1):
                assert observe(stopping(case, code, unit, skip)) == expected, (code.co_name, unit, skip)


@pytest.mark.parametrize("case", CASES)
def test_left_after_some_instructions(case):
    expected = observe(case)
    for count in (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233):
        assert observe(leaving_after(case, count)) == expected, count


def test_corpus_is_not_empty():
    assert len(CASES) > 200
