"""Written functions do the same in our evaluator as in CPython's: whole, step by step, left at every instruction."""

import importlib
import pkgutil
import sys
from pathlib import Path

import corpus
import pytest
from comparing import all_codes, evaluated, leaving_after, observe, stepping, stopping

import graphlift_evaluator


def _modules():
    for info in pkgutil.iter_modules(corpus.__path__):
        yield info.name, vars(importlib.import_module(f"corpus.{info.name}"))
    # Syntax that 3.11 does not know is kept in text files.
    for path in sorted((Path(corpus.__file__).parent / "newer").glob("since_*.txt")):
        if sys.version_info[:2] >= (3, int(path.stem[-2:])):
            namespace = {"__name__": path.stem}
            exec(compile(path.read_text(), str(path), "exec"), namespace)
            yield path.stem, namespace


def _cases():
    for module, contents in _modules():
        for name, value in contents.items():
            if name.startswith("case_") and callable(value):
                yield pytest.param(value, id=f"{module}-{name[5:]}")


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
