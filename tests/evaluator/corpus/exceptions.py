"""try, except, finally."""
# ruff: noqa: E742, F401, F821

import sys
import traceback


def case_uncaught():
    x = 1
    y = x / 0
    return y


def case_uncaught_nested():
    def a():
        b()

    def b():
        c()

    def c():
        raise LookupError("deep")

    a()


def case_except_types():
    out = []
    for e in (ValueError("v"), KeyError("k"), IndexError("i"), OSError(2, "os"), ZeroDivisionError()):
        try:
            raise e
        except (ValueError, KeyError) as x:
            out.append(("vk", type(x).__name__))
        except LookupError:
            out.append("lookup")
        except OSError as x:
            out.append(x.errno)
        except:  # noqa: E722
            out.append("bare")
        else:
            out.append("else")
        finally:
            out.append("f")
    return out


def case_try_else():
    out = []
    try:
        out.append(1)
    except ValueError:
        out.append(2)
    else:
        out.append(3)
        try:
            raise KeyError
        except KeyError:
            out.append(4)
    finally:
        out.append(5)
    return out


def case_finally_return_overrides():
    def f():
        try:
            raise ValueError
        finally:
            return 5  # noqa: B012

    def g():
        try:
            return 1
        finally:
            return 2  # noqa: B012

    def h():
        for i in range(3):
            try:
                continue
            finally:
                if i == 1:
                    break  # noqa: B012
        return i

    return f(), g(), h()


def case_finally_order():
    log = []

    def f(n):
        try:
            try:
                log.append(1)
                if n == 1:
                    raise ValueError
                if n == 2:
                    return "ret"
            except ValueError:
                log.append(2)
                raise KeyError("k")
            finally:
                log.append(3)
        except KeyError:
            log.append(4)
        finally:
            log.append(5)
        return "end"

    return [f(i) for i in range(3)], log


def case_finally_with_loop():
    out = []
    for i in range(3):
        try:
            if i == 1:
                continue
            if i == 2:
                break
            out.append(i)
        finally:
            out.append(("f", i))
    return out


def case_except_variable_cleared():
    try:
        raise ValueError
    except ValueError as e:
        pass
    try:
        return e
    except UnboundLocalError as err:
        return str(err)


def case_except_variable_deleted_inside():
    try:
        raise ValueError
    except ValueError as e:
        del e
    return "ok"


def case_catch_non_exception():
    try:
        raise ValueError("x")
    except 5:
        pass


def case_catch_tuple_with_non_exception():
    try:
        raise ValueError("x")
    except (KeyError, "no"):
        pass


def case_exception_in_loop_many():
    n = 0
    for i in range(20):
        try:
            if i % 3 == 0:
                raise ValueError(i)
            if i % 3 == 1:
                [][i]
        except ValueError as e:
            n += e.args[0]
        except IndexError:
            n += 1
        else:
            n += 100
    return n


def case_nested_function_handlers():
    def f(n):
        try:
            if n:
                return f(n - 1)
            raise ValueError("bottom")
        except ValueError as e:
            if n == 3:
                raise
            raise ValueError(n) from e

    return f(3)


def case_system_exit():
    try:
        sys.exit(3)
    except SystemExit as e:
        return e.code


def case_stop_iteration_in_function():
    def f():
        raise StopIteration(3)

    try:
        f()
    except StopIteration as e:
        return e.value


def case_exception_from_c_code():
    out = []
    for f in (
        lambda: int("x"),
        lambda: [][1],
        lambda: {}[1],
        lambda: "a" + 1,
        lambda: None + 1,
        lambda: open("/nonexistent/q"),
        lambda: b"\xff".decode(),
        lambda: next(iter([])),
        lambda: 1 << -1,
        lambda: 2**0.5 % 0,
        lambda: len(5),
    ):
        try:
            f()
        except Exception as e:
            out.append((type(e).__name__, str(e)))
    return out


def case_destructor_during_unwinding():
    class D:
        def __del__(self):
            print("del", sys.exc_info()[0])

    def f():
        d = D()
        raise ValueError("v")

    try:
        f()
    except ValueError as e:
        print("caught")
        e.__traceback__ = None
        del e
    print("end")


def case_error_in_destructor_is_ignored():
    class D:
        def __del__(self):
            try:
                raise KeyError("inside")
            except KeyError:
                print("handled inside")

    def f():
        D()
        return sys.exc_info()

    return f()


def case_exception_attributes_kept():
    e = ValueError("same")
    for _ in range(3):
        try:
            raise e
        except ValueError as got:
            assert got is e
    return len(traceback.extract_tb(e.__traceback__))


def case_deep_try_nesting():
    try:
        try:
            try:
                try:
                    raise ValueError(1)
                except KeyError:
                    pass
            finally:
                print("a")
        except IndexError:
            pass
        finally:
            print("b")
    except ValueError as e:
        return e.args
