"""Generators: send, throw, close, laziness, return values, cleanup."""
# ruff: noqa: E742, F401, F821

import itertools


def case_simple():
    def g():
        yield 1
        yield 2

    it = g()
    return next(it), next(it), next(it, "end"), list(g())


def case_generator_with_loop_and_state():
    def fib():
        a, b = 0, 1
        while True:
            yield a
            a, b = b, a + b

    return list(itertools.islice(fib(), 10))


def case_send():
    def g():
        total = 0
        while True:
            x = yield total
            if x is None:
                return
            total += x

    it = g()
    next(it)
    out = [it.send(v) for v in (1, 2, 3)]
    try:
        next(it)
    except StopIteration as e:
        return out, e.value


def case_send_before_start():
    def g():
        yield 1

    g().send(5)


def case_throw_caught():
    def g():
        while True:
            try:
                x = yield "ready"
                print("got", x)
            except ValueError as e:
                print("caught", e, e.__traceback__.tb_lineno)

    it = g()
    next(it)
    a = it.throw(ValueError("v"))
    b = it.send(4)
    try:
        it.throw(KeyError("k"))
    except KeyError as e:
        return a, b, str(e), list(it)


def case_throw_at_start():
    def g():
        try:
            yield 1
        finally:
            print("never")

    it = g()
    it.throw(ValueError("early"))


def case_throw_class_and_finished():
    def g():
        yield 1

    it = g()
    list(it)
    it.throw(ValueError)


def case_close_runs_finally():
    def g():
        try:
            yield 1
            yield 2
        finally:
            print("cleanup")

    it = g()
    next(it)
    it.close()
    it.close()
    return next(it, "closed")


def case_close_ignored():
    def g():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    it = g()
    next(it)
    it.close()


def case_close_returns():
    def g():
        try:
            yield 1
        except GeneratorExit:
            print("exit")
            return 5

    it = g()
    next(it)
    it.close()
    return "ok"


def case_dropped_generator():
    def g():
        try:
            yield 1
        finally:
            print("dropped")

    it = g()
    next(it)
    del it
    print("after")


def case_stop_iteration_inside():
    def g():
        yield 1
        raise StopIteration("bad")

    list(g())


def case_next_inside_generator():
    def g(it):
        yield next(it)
        yield next(it)

    list(g(iter([1])))


def case_generator_expression():
    data = [3, 1, 2]
    return (
        sum(x * x for x in data if x > 1),
        sorted((y, x) for x in data for y in range(x) if y),
        any(x > 2 for x in data),
    )


def case_lazy_evaluation_order():
    log = []

    def src():
        for i in range(3):
            log.append(("src", i))
            yield i

    for v in (x * 2 for x in src()):
        log.append(("use", v))
    return log


def case_bare_raise_in_generator_of_handler():
    def g():
        yield 1
        raise

    it = g()
    next(it)
    try:
        raise ValueError("outer")
    except ValueError:
        next(it)


def case_reentrant_generator():
    def g():
        yield next(it)

    it = g()
    next(it)


def case_generator_attributes():
    def g():
        x = 1
        yield x

    it = g()
    a = it.gi_frame.f_lineno - g.__code__.co_firstlineno, it.gi_running
    next(it)
    b = it.gi_frame.f_lineno - g.__code__.co_firstlineno, it.gi_frame.f_locals, it.gi_yieldfrom
    list(it)
    return a, b, it.gi_frame


def case_yield_in_expressions():
    def g():
        x = [(yield 1), (yield 2)]
        y = (yield 3) + (yield 4)
        print(x, y)
        return f"{(yield 5)}"

    it = g()
    out = [next(it)]
    for v in (10, 20, 30, 40):
        out.append(it.send(v))
    try:
        it.send("end")
    except StopIteration as e:
        out.append(e.value)
    return out


def case_generator_closure():
    def make(n):
        def g():
            nonlocal n
            while n:
                n -= 1
                yield n

        return g

    return list(make(3)()), list(make(2)())


def case_generator_many_locals_and_args():
    def g(a, b=2, *c, d=4, **e):
        yield a, b, c, d, e
        a = b = 0
        yield a, b

    return list(g(1)), list(g(1, 2, 3, d=5, f=6))


def case_itertools_with_generators():
    def g(n):
        for i in range(n):
            yield i

    return (
        list(zip(g(3), g(2))),
        list(itertools.chain(g(2), g(1))),
        list(enumerate(g(2))),
        dict(zip("ab", g(2))),
        max(g(4)),
        [*g(3)],
        {*g(2)},
        (lambda *a: a)(*g(3)),
    )


def case_unpack_generator():
    def g():
        print("start")
        yield 1
        yield 2
        print("end")

    a, b = g()
    c, *d = g()
    try:
        (e,) = g()
    except ValueError as err:
        return a, b, c, d, str(err)
