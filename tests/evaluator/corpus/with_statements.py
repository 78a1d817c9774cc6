"""Context managers."""
# ruff: noqa: E742, F401, F821

import contextlib
import sys


class Manager:
    """Prints what happens to it."""

    def __init__(self, name="m", swallow=False, fail_enter=False, fail_exit=False):
        self.name, self.swallow, self.fail_enter, self.fail_exit = name, swallow, fail_enter, fail_exit

    def __enter__(self):
        print("enter", self.name)
        if self.fail_enter:
            raise RuntimeError("enter failed")
        return self.name

    def __exit__(self, kind, value, tb):
        print("exit", self.name, kind, value, tb is not None, sys.exc_info()[1] is value)
        if self.fail_exit:
            raise RuntimeError("exit failed")
        return self.swallow


def case_plain():
    with Manager() as m:
        print("body", m)
    return m


def case_no_target():
    with Manager():
        return 5


def case_several():
    with Manager("a") as a, Manager("b") as b:
        return a + b


# fmt: off
def case_parenthesized():
    with (
        Manager("a") as a,
        Manager("b"),
    ):
        x = a
    return x
# fmt: on


def case_exception_passes():
    with Manager():
        raise ValueError("in body")


def case_exception_swallowed():
    with Manager(swallow=True):
        raise ValueError("in body")
    return "after"


def case_exception_swallowed_inner():
    out = []
    with Manager("outer"):
        with Manager("inner", swallow=True):
            out.append(1)
            1 / 0
        out.append(2)
    return out


def case_exit_raises():
    with Manager(fail_exit=True):
        pass


def case_exit_raises_after_exception():
    with Manager(fail_exit=True):
        raise ValueError("body")


def case_enter_raises():
    with Manager("a"), Manager("b", fail_enter=True):
        print("never")


def case_no_enter():
    with 5:
        pass


def case_no_exit():
    class E:
        def __enter__(self):
            return 1

    with E():
        pass


def case_enter_on_instance_ignored():
    class E:
        pass

    e = E()
    e.__enter__ = e.__exit__ = lambda *a: 1
    with e:
        pass


def case_break_continue_return():
    def f():
        for i in range(4):
            with Manager(str(i)):
                if i == 1:
                    continue
                if i == 2:
                    break
        with Manager("r"):
            return "returned"

    return f()


def case_target_unpacked():
    @contextlib.contextmanager
    def cm():
        yield 1, (2, 3)

    class O:
        pass

    o = O()
    with cm() as (a, (b, c)), cm() as o.attr, cm() as [*rest]:
        pass
    return a, b, c, o.attr, rest


def case_target_unpack_fails():
    with Manager("ab") as (a, b, c):
        print("never")


def case_contextmanager_decorator():
    @contextlib.contextmanager
    def cm(n):
        print("setup", n)
        try:
            yield n * 2
        except ValueError as e:
            print("handled", e)
        finally:
            print("teardown", n)

    with cm(1) as x:
        print(x)
    with cm(2):
        raise ValueError("v")
    with cm(3):
        raise KeyError("k")


def case_exit_stack():
    with contextlib.ExitStack() as stack:
        for n in "abc":
            stack.enter_context(Manager(n))
        stack.callback(print, "callback")
        raise_later = True
    return raise_later


def case_suppress_redirect_closing():
    class C:
        def close(self):
            print("closed")

    with contextlib.suppress(KeyError, ValueError):
        {}["x"]
    with contextlib.closing(C()) as c:
        pass
    with contextlib.nullcontext(4) as n:
        pass
    return type(c).__name__, n


def case_with_in_generator():
    def g():
        with Manager("g") as m:
            yield m
            yield 2

    it = g()
    a = next(it)
    it.close()
    b = list(g())
    it = g()
    next(it)
    try:
        it.throw(ValueError("thrown"))
    except ValueError as e:
        return a, b, str(e)


def case_with_and_try():
    try:
        with Manager():
            try:
                raise ValueError("a")
            finally:
                print("finally")
    except ValueError as e:
        return e.args, [type(e.__context__)]


def case_exit_truth_raises():
    class T:
        def __bool__(self):
            raise KeyError("truth")

    class M:
        def __enter__(self):
            return self

        def __exit__(self, *a):
            return T()

    with M():
        raise ValueError("v")


def case_lock():
    import threading

    lock = threading.RLock()
    with lock, lock:
        return lock.acquire(blocking=False)


def case_exit_is_descriptor():
    class M:
        def __enter__(self):
            return 1

        @staticmethod
        def __exit__(*a):
            print(len(a))

    with M():
        pass


def case_traceback_in_with():
    x = {}
    with Manager("t"):
        y = 1
        x["missing"]
        y = 2


# fmt: off
def case_multiline_with():
    with Manager("a"), \
            Manager("b"):
        raise ValueError(
            "lines")
# fmt: on
