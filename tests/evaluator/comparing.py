"""Runs a callable by CPython and by our evaluator and describes what happened, so that the two can be compared."""

import contextlib
import io
import re
import types
import warnings

import graphlift_evaluator


def _lines(traceback):
    lines = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename != __file__:
            lines.append((code.co_name, traceback.tb_lineno))
        traceback = traceback.tb_next
    return lines


def describe_exception(error, depth=0):
    """Type, text, lines, notes and the chain behind an exception."""
    if error is None or depth > 6:
        return None
    parts = [type(error).__name__, _without_addresses(str(error)), _lines(error.__traceback__)]
    parts.append(("notes", getattr(error, "__notes__", None), getattr(error, "name", None)))
    parts.append(("cause", describe_exception(error.__cause__, depth + 1), error.__suppress_context__))
    parts.append(("context", describe_exception(error.__context__, depth + 1)))
    if isinstance(error, BaseExceptionGroup):
        parts.append(("members", [describe_exception(e, depth + 1) for e in error.exceptions]))
    return parts


def _without_addresses(text):
    return re.sub(r"0x[0-9a-f]+", "0x", text)


def observe(call):
    """What `call()` returned or raised, printed and warned, as plain comparable data."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = ("returned", _without_addresses(repr(call())))
        except BaseException as error:
            outcome = ("raised", describe_exception(error))
            error.__traceback__ = None
    return outcome, out.getvalue(), [str(w.message) for w in caught]


def evaluated(function, *args):
    """The function's call in our evaluator, as a callable without arguments."""
    return lambda: graphlift_evaluator.evaluate(function, *args)


def stopping(function, code, unit, skip=0):
    """Frames of `code` leave to CPython's evaluator before the instruction at `unit`."""
    return lambda: graphlift_evaluator.evaluate_stopping(function, code, [unit], skip=skip)[0]


def leaving_after(function, count):
    """All frames leave to CPython's evaluator once `count` instructions were evaluated."""
    return lambda: graphlift_evaluator.evaluate_stopping(function, None, None, skip=count)[0]


def stepping(function):
    """Every instruction executed on its own."""
    return lambda: graphlift_evaluator.evaluate_stopping(function, None, None, step=True)[0]


def all_codes(function):
    """The code objects of a function and of everything defined in it."""
    found, todo = [], [function.__code__]
    while todo:
        code = todo.pop()
        found.append(code)
        todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return found
