"""raise, chains of exceptions, tracebacks, sys.exc_info."""
# ruff: noqa: E742, F401, F821

import sys
import traceback


def _raise(e):
    raise e


def case_else_raises():
    try:
        pass
    except ValueError:
        return "wrong"
    else:
        raise ValueError("from else")


def case_finally_raises():
    try:
        raise ValueError("first")
    finally:
        raise KeyError("second")


def case_reraise():
    try:
        try:
            raise ValueError("x")
        except ValueError:
            print("first")
            raise
    except ValueError as e:
        return [t.lineno - case_reraise.__code__.co_firstlineno for t in traceback.extract_tb(e.__traceback__)]


def case_reraise_uncaught():
    try:
        _raise(ValueError("x"))
    except ValueError:
        raise


def case_reraise_named_uncaught():
    try:
        _raise(ValueError("x"))
    except ValueError as e:
        raise e


def case_reraise_no_match():
    try:
        _raise(ValueError("x"))
    except KeyError:
        return 1
    except (IndexError, TypeError):
        return 2


def case_reraise_through_finally():
    try:
        try:
            _raise(ValueError("x"))
        finally:
            print("f1")
    finally:
        print("f2")


def case_bare_raise_without_exception():
    raise


def case_bare_raise_in_function():
    def f():
        raise

    try:
        raise ValueError("seen")
    except ValueError:
        f()


def case_chain_implicit():
    try:
        raise ValueError("one")
    except ValueError:
        raise KeyError("two")


def case_chain_explicit():
    try:
        raise ValueError("one")
    except ValueError as e:
        raise KeyError("two") from e


def case_chain_none():
    try:
        raise ValueError("one")
    except ValueError:
        raise KeyError("two") from None


def case_chain_three():
    try:
        try:
            raise ValueError(1)
        except ValueError:
            raise KeyError(2)
    except KeyError:
        raise IndexError(3) from TypeError("cause")


def case_context_of_nested_handlers():
    out = []
    try:
        raise ValueError("a")
    except ValueError:
        try:
            raise KeyError("b")
        except KeyError as k:
            out.append(repr(k.__context__))
        try:
            raise IndexError("c")
        except IndexError as i:
            out.append(repr(i.__context__))
    try:
        raise TypeError("d")
    except TypeError as t:
        out.append(repr(t.__context__))
    return out


def case_raise_class_instance_and_bad():
    out = []
    for make in (
        lambda: _raise(ValueError),
        lambda: _raise(ValueError("i")),
        lambda: _raise(5),
        lambda: _raise("s"),
        lambda: _raise(None),
    ):
        try:
            make()
        except BaseException as e:
            out.append((type(e).__name__, str(e)))
    return out


def case_raise_from_bad_cause():
    raise ValueError from 5


def case_raise_from_class():
    raise ValueError("v") from KeyError


def case_raise_class_whose_call_raises():
    class E(Exception):
        def __init__(self):
            raise RuntimeError("in init")

    raise E


def case_raise_new_returns_other():
    class E(Exception):
        def __new__(cls):
            return 5

    raise E


def case_catch_expression_raises():
    def types():
        raise KeyError("types")

    try:
        raise ValueError("x")
    except types():
        pass


def case_exc_info_states():
    out = [sys.exc_info()]
    try:
        raise ValueError("a")
    except ValueError as e:
        out.append(sys.exc_info()[1] is e)
        try:
            raise KeyError("b")
        except KeyError as k:
            out.append(sys.exc_info()[1] is k)
        out.append(sys.exc_info()[1] is e)

        def f():
            return sys.exc_info()[1] is e

        out.append(f())
    out.append(sys.exc_info())
    return out


def case_exc_info_in_finally():
    out = []
    try:
        try:
            raise ValueError
        finally:
            out.append(sys.exc_info()[0])
    except ValueError:
        pass
    try:
        pass
    finally:
        out.append(sys.exc_info()[0])
    return out


# fmt: off
def case_traceback_lines():
    def f(k):
        if k == 0:
            return 1 / 0
        return g(
            k,
            "x",
        )

    def g(k, s):
        return f(k - 1) + len(
            s)

    try:
        f(2)
    except ZeroDivisionError as e:
        first = case_traceback_lines.__code__.co_firstlineno
        return [(t.name, t.lineno - first) for t in traceback.extract_tb(e.__traceback__)]
# fmt: on


# fmt: off
def case_traceback_multiline_expression():
    a, b = 1, None
    return (a +
            a +
            b)
# fmt: on


# fmt: off
def case_traceback_multiline_call():
    def f(*a):
        return a

    return f(
        1,
        undefined_name,
        3,
    )
# fmt: on


def case_traceback_frames_after_return():
    def f():
        x = 5
        raise ValueError("kept")

    try:
        f()
    except ValueError as e:
        tb = e.__traceback__.tb_next
        return tb.tb_frame.f_locals, tb.tb_frame.f_lineno - tb.tb_lineno, tb.tb_lasti == tb.tb_frame.f_lasti


def case_with_traceback():
    try:
        raise ValueError
    except ValueError as e:
        tb = e.__traceback__
    raise KeyError("moved").with_traceback(tb)


def case_add_note():
    try:
        raise ValueError("v")
    except ValueError as e:
        e.add_note("note")
        raise


def case_keyboard_interrupt_raised():
    try:
        raise KeyboardInterrupt
    except Exception:
        return "no"
    except BaseException as e:
        return type(e).__name__


def case_import_error_details():
    try:
        from os import no_such_name
    except ImportError as e:
        return e.name, str(e).split(" (")[0]


def case_import_missing_module():
    pass
