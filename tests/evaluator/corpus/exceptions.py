"""try, except, finally, raise, chaining, tracebacks, sys.exc_info."""

import sys
import traceback


def _raise(e):
    raise e


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


def case_else_raises():
    try:
        pass
    except ValueError:
        return "wrong"
    else:
        raise ValueError("from else")


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


def case_finally_raises():
    try:
        raise ValueError("first")
    finally:
        raise KeyError("second")


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
    for make in (lambda: _raise(ValueError), lambda: _raise(ValueError("i")), lambda: _raise(5), lambda: _raise("s"), lambda: _raise(None)):
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


def case_traceback_multiline_expression():
    a, b = 1, None
    return (a +
            a +
            b)


def case_traceback_multiline_call():
    def f(*a):
        return a

    return f(
        1,
        undefined_name,
        3,
    )


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


def case_keyboard_interrupt_raised():
    try:
        raise KeyboardInterrupt
    except Exception:
        return "no"
    except BaseException as e:
        return type(e).__name__


def case_stop_iteration_in_function():
    def f():
        raise StopIteration(3)

    try:
        f()
    except StopIteration as e:
        return e.value


def case_exception_from_c_code():
    out = []
    for f in (lambda: int("x"), lambda: [][1], lambda: {}[1], lambda: "a" + 1, lambda: None + 1, lambda: open("/nonexistent/q"),
              lambda: b"\xff".decode(), lambda: next(iter([])), lambda: 1 << -1, lambda: 2 ** 0.5 % 0, lambda: len(5)):
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


def case_import_error_details():
    try:
        from os import no_such_name
    except ImportError as e:
        return e.name, str(e).split(" (")[0]


def case_import_missing_module():
    import no_such_module_anywhere


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
