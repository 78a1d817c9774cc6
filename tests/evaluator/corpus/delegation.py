"""yield from, generators and the handled exception; coroutines, which stay with CPython."""
# ruff: noqa: E742, F401, F821

import asyncio


def case_yield_from_values():
    def inner(n):
        for i in range(n):
            yield i
        return n * 10

    def outer():
        a = yield from inner(2)
        b = yield from inner(3)
        yield a + b
        yield from "xy"
        yield from []
        c = yield from (i for i in range(2))
        yield c

    return list(outer())


def case_yield_from_send_throw():
    def inner():
        while True:
            try:
                x = yield
                print("inner", x)
                if x == "stop":
                    return "result"
            except ValueError as e:
                print("inner caught", e)

    def outer():
        r = yield from inner()
        print("outer got", r)
        yield "last"

    it = outer()
    next(it)
    it.send(1)
    it.throw(ValueError("boo"))
    return it.send("stop"), next(it, "done")


def case_yield_from_throw_through():
    def inner():
        try:
            yield 1
        finally:
            print("inner finally")

    def outer():
        try:
            yield from inner()
        except KeyError as e:
            print("outer", e)
            yield "recovered"

    it = outer()
    next(it)
    return it.throw(KeyError("k")), list(it)


def case_yield_from_throw_stop():
    def inner():
        try:
            yield 1
        except KeyError:
            return "from throw"

    def outer():
        r = yield from inner()
        yield r

    it = outer()
    next(it)
    return it.throw(KeyError("k"))


def case_yield_from_close():
    def inner():
        try:
            yield 1
        finally:
            print("inner closed")

    def outer():
        try:
            yield from inner()
        finally:
            print("outer closed")

    it = outer()
    next(it)
    it.close()


def case_yield_from_custom_iterator():
    class I:
        def __init__(self):
            self.n = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.n += 1
            if self.n > 2:
                raise StopIteration("value")
            return self.n

        def send(self, v):
            print("send", v)
            return self.__next__()

    def g():
        r = yield from I()
        yield r

    it = g()
    return next(it), it.send("x"), next(it)


def case_yield_from_not_iterable():
    def g():
        yield from 5

    list(g())


def case_generator_in_except():
    def g():
        try:
            raise ValueError("one")
        except ValueError:
            yield 1
            try:
                raise KeyError("two")
            except KeyError as e:
                yield type(e.__context__).__name__
            yield 2
            raise

    it = g()
    out = [next(it), next(it), next(it)]
    try:
        next(it)
    except ValueError as e:
        out.append(str(e))
    return out


def case_exc_info_across_yield():
    import sys

    def g():
        yield sys.exc_info()[0]
        try:
            raise KeyError
        except KeyError:
            yield sys.exc_info()[0]
        yield sys.exc_info()[0]

    it = g()
    out = [next(it)]
    try:
        raise ValueError
    except ValueError:
        out.append(next(it))
        out.append(sys.exc_info()[0])
        out.append(next(it))
    return out, list(it)


def case_recursive_generator():
    def walk(t):
        if isinstance(t, list):
            for x in t:
                yield from walk(x)
        else:
            yield t

    return list(walk([1, [2, [3, 4], 5], [[6]]]))


def case_async_functions():
    async def inner(x):
        await asyncio.sleep(0)
        return x * 2

    async def agen():
        for i in range(3):
            yield i
            await asyncio.sleep(0)

    class CM:
        async def __aenter__(self):
            return "cm"

        async def __aexit__(self, *a):
            return False

    async def main():
        out = [await inner(1)]
        async for v in agen():
            out.append(v)
        async with CM() as c:
            out.append(c)
        out += [v async for v in agen() if v]
        out += await asyncio.gather(inner(5), inner(6))
        return out

    return asyncio.run(main())


def case_coroutine_driven_by_hand():
    import types

    @types.coroutine
    def wait():
        x = yield "waiting"
        return x

    async def f():
        return await wait()

    c = f()
    a = c.send(None)
    try:
        c.send(7)
    except StopIteration as e:
        return a, e.value


def case_yield_from_coroutine_refused():
    async def c():
        return 1

    co = c()

    def g():
        yield from co

    try:
        list(g())
    finally:
        co.close()
