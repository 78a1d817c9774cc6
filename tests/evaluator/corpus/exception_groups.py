"""except* clauses."""
# ruff: noqa: E742, F401, F821

import sys


def case_except_star_basic():
    out = []
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError("k"), ExceptionGroup("n", [ValueError(2), TypeError(3)])])
    except* ValueError as e:
        out.append(("v", repr(e), e.exceptions))
    except* (KeyError, TypeError) as e:
        out.append(("kt", repr(e)))
    return out


def case_except_star_rest():
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError("k")])
    except* ValueError as e:
        print("v", e.exceptions)


def case_except_star_naked():
    try:
        raise ValueError("naked")
    except* ValueError as e:
        print(type(e).__name__, e.exceptions, e.message)
    try:
        raise ValueError("naked")
    except* KeyError:
        print("no")


def case_except_star_raises():
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError("k"), TypeError("t")])
    except* ValueError:
        raise IndexError("new")
    except* KeyError as e:
        raise e


def case_except_star_reraise():
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError("k")])
        except* ValueError:
            raise
    except* KeyError as e:
        print("k", e.exceptions)


def case_except_star_naked_raises():
    try:
        raise ValueError("naked")
    except* ValueError as e:
        raise KeyError("other") from e


def case_except_star_finally_else():
    out = []
    try:
        out.append(1)
    except* ValueError:
        out.append(2)
    else:
        out.append(3)
    finally:
        out.append(4)
    return out


def case_except_star_catch_group():
    try:
        raise ValueError
    except* ExceptionGroup:
        pass


def case_except_star_bad_type():
    try:
        raise ValueError
    except* 5:
        pass


def case_except_star_exc_info():
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError:
        print(repr(sys.exc_info()[1]))
    except* KeyError:
        print(repr(sys.exc_info()[1]))
    return sys.exc_info()


def case_except_star_custom_split():
    class G(ExceptionGroup):
        def derive(self, excs):
            print("derive", len(excs))
            return G(self.message, excs)

    try:
        raise G("mine", [ValueError(1), KeyError(2)])
    except* ValueError as e:
        print(type(e).__name__)
    except* KeyError as e:
        print(type(e).__name__)


def case_except_star_break_through_loop():
    out = []
    for i in range(3):
        try:
            if i:
                raise ExceptionGroup("g", [ValueError(i)])
        except* ValueError as e:
            out.append(e.exceptions[0].args)
    return out
