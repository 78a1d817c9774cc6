"""What 3.13 brought: defaults of type parameters, locals() of a frame, docstrings without indentation."""

import sys


def case_type_parameter_defaults():
    class A[T = int, *Ts = *tuple[int, str], **P = [int]]:
        pass

    return A.__type_params__[0].__default__, A[str].__args__[0]


def case_frame_locals_write_through():
    x = 1
    sys._getframe().f_locals["x"] = 5
    sys._getframe().f_locals["extra"] = 6
    return x, "extra" in sys._getframe().f_locals


def case_locals_snapshot():
    a = 1
    snap = locals()
    a = 2
    snap["a"] = 3
    return a, snap["a"], locals()["a"]


def case_docstring_indent():
    def f():
        """First.

        Second.
        """

    return f.__doc__
