"""Random programs do the same in our evaluator as in CPython's, whole and left at a random instruction."""

import pytest
from comparing import all_codes, evaluated, leaving_after, observe, stepping, stopping

import graphlift_evaluator

hypothesis = pytest.importorskip("hypothesis")

from programs import programs  # noqa: E402

SETTINGS = hypothesis.settings(
    max_examples=150, deadline=None, suppress_health_check=list(hypothesis.HealthCheck), database=None, derandomize=True
)


def _fresh(text):
    """The program's function, in a new module each time: programs change their globals."""
    try:
        code = compile(text, "<program>", "exec")
    except SyntaxError:
        hypothesis.reject()
    namespace = {"__name__": "program"}
    exec(code, namespace)
    return namespace["program"]


def _observe(text, how):
    return observe(how(_fresh(text)))


@hypothesis.given(programs)
@SETTINGS
def test_same(text):
    expected = _observe(text, lambda f: f)
    assert _observe(text, evaluated) == expected
    assert _observe(text, stepping) == expected


@hypothesis.given(programs, hypothesis.strategies.integers(0, 300))
@SETTINGS
def test_same_when_left_after_some_instructions(text, count):
    expected = _observe(text, lambda f: f)
    assert _observe(text, lambda f: leaving_after(f, count)) == expected


@hypothesis.given(programs, hypothesis.strategies.data())
@SETTINGS
def test_same_when_left_at_an_instruction(text, data):
    expected = _observe(text, lambda f: f)
    codes = all_codes(_fresh(text))
    places = [(c, i[0]) for c in range(len(codes)) for i in graphlift_evaluator.decode(codes[c])]
    index, unit = data.draw(hypothesis.strategies.sampled_from(places))
    skip = data.draw(hypothesis.strategies.integers(0, 2))
    assert _observe(text, lambda f: stopping(f, all_codes(f)[index], unit, skip)) == expected
