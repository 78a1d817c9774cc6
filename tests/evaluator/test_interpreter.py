"""What the evaluator owes the interpreter around it: depth, signals, threads, references, tracing, other frames."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import pytest
from comparing import observe

import graphlift_evaluator as ge


def _instructions(call):
    before = ge.counters()["instructions"]
    call()
    return ge.counters()["instructions"] - before


def test_frames_under_c_code_are_evaluated():
    def key(x):
        return -x

    def f():
        return sorted(range(5), key=key)

    assert _instructions(lambda: ge.evaluate(f)) > 5 * 3
    assert _instructions(f) == 0


def test_hook_is_gone_after_the_call():
    ge.evaluate(lambda: None)
    assert not ge.hook_installed()
    with pytest.raises(ZeroDivisionError):
        ge.evaluate(lambda: 1 / 0)
    assert not ge.hook_installed()


def test_hook_is_there_during_the_call_and_nests():
    assert ge.evaluate(ge.hook_installed)
    assert ge.evaluate(lambda: (ge.evaluate(lambda: 5), ge.hook_installed())) == (5, True)
    assert not ge.hook_installed()


def test_coroutines_stay_with_cpython():
    async def f():
        return sum(range(3))

    def drive():
        try:
            f().send(None)
        except StopIteration as e:
            return e.value

    assert ge.evaluate(drive) == 3


def test_generator_outlives_the_call():
    def g():
        for i in range(4):
            yield i

    def f():
        it = g()
        next(it)
        return it

    assert list(ge.evaluate(f)) == [1, 2, 3]


def test_generator_started_outside():
    def g():
        x = yield 1
        try:
            yield x
        except KeyError:
            yield "caught"

    it = g()
    next(it)
    assert ge.evaluate(it.send, 5) == 5
    assert ge.evaluate(it.throw, KeyError()) == "caught"
    assert ge.evaluate(list, it) == []


def test_recursion_limit_is_pythons():
    depth = 0

    def f():
        nonlocal depth
        depth += 1
        f()

    def run():
        nonlocal depth
        depth = 0
        with pytest.raises(RecursionError) as caught:
            f()
        return depth, str(caught.value)

    (expected, text), (ours, our_text) = run(), ge.evaluate(run)
    assert abs(expected - ours) < 10 and text.split(" while")[0] == our_text.split(" while")[0]


def test_deep_recursion_never_overflows_the_c_stack():
    def f(n):
        return n if n == 0 else f(n - 1) + 1

    before = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(10**6)
        with pytest.raises(RecursionError):
            ge.evaluate(f, 10**6 - 100)
    finally:
        sys.setrecursionlimit(before)
    assert ge.evaluate(f, 200) == 200


def test_deep_recursion_in_a_thread_with_a_small_stack():
    def f(n):
        return n if n == 0 else f(n - 1) + 1

    result = []

    def run():
        try:
            result.append(ge.evaluate(f, 100_000))
        except RecursionError:
            result.append("recursion")

    before = sys.getrecursionlimit()
    threading.stack_size(256 * 1024)
    try:
        sys.setrecursionlimit(10**6)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(0)
        sys.setrecursionlimit(before)
    assert result == ["recursion"]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_signals_interrupt_loops():
    class Rang(Exception):
        pass

    def ring(*_):
        raise Rang

    def f():
        while True:
            pass

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Rang):
            ge.evaluate(f)
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_a_signal_that_comes_while_an_audit_hook_runs():
    code = """
import signal, sys
import graphlift_evaluator as ge

class Rang(Exception):
    pass

def ring(number, frame):
    raise Rang

def loop():
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        while True:
            pass
    except Rang:
        return "rang"

sys.addaudithook(lambda event, arguments: None)
signal.signal(signal.SIGALRM, ring)
assert ge.evaluate(loop) == "rang"
"""
    path = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_signal_is_seen_right_behind_the_call():
    seen = []

    def f():
        os.kill(os.getpid(), signal.SIGUSR1)
        seen.append("after")

    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append("handler"))
    try:
        ge.evaluate(f)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == ["handler", "after"]


def test_other_threads_get_their_turn():
    stop = False
    turns = 0

    def other():
        nonlocal turns
        while not stop:
            turns += 1

    def f():
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            pass

    thread = threading.Thread(target=other)
    thread.start()
    ge.evaluate(f)
    stop = True
    thread.join()
    assert turns > 100


def test_other_threads_are_not_evaluated():
    counted = []

    def other():
        counted.append(sum(i for i in range(10)))

    def f():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    ge.evaluate(lambda: None)
    ge.evaluate(f)
    assert counted == [45]


def test_threads_evaluate_side_by_side():
    def f(n):
        total = 0
        for i in range(n):
            try:
                if i % 7 == 0:
                    raise ValueError(i)
                total += sum(x for x in (i, 1))
            except ValueError as e:
                total += e.args[0]
        return total

    expected, results = f(500), []
    threads = [threading.Thread(target=lambda: results.append(ge.evaluate(f, 500))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4
    assert not ge.hook_installed()


def test_locals_are_released():
    class Thing:
        pass

    seen = []

    def f():
        thing = Thing()
        seen.append(weakref.ref(thing))
        other = [thing, thing]
        return len(other)

    def g():
        thing = Thing()
        seen.append(weakref.ref(thing))
        raise ValueError

    ge.evaluate(f)
    with pytest.raises(ValueError):
        ge.evaluate(g)
    gc.collect()
    assert [r() for r in seen] == [None, None]


def test_references_do_not_leak():
    def f(xs):
        out = []
        for a, *b in xs:
            try:
                out.append({a: [*b], **{"k": a}}["k"])
                if len(out) == 3:
                    raise KeyError(a)
            except KeyError as e:
                out.append(f"{e!r}")
            with open(os.devnull) as file:
                out.append(file.name)
        return out, (lambda *p, **q: (p, q))(*out, z=1)

    def blocks():
        gc.collect()
        return sys.getallocatedblocks()

    data = [(i, "x", i) for i in range(5)]

    def grown_in(runs):
        before = blocks()
        for _ in range(runs):
            ge.evaluate(f, data)
        return blocks() - before

    grown_in(300)  # until CPython has specialized all code
    # A reference left behind by each run shows in every round; what CPython keeps or frees once is in one.
    assert sorted(grown_in(200) for _ in range(3))[1] < 50


def test_cycle_through_a_running_generator_is_collected():
    class Thing:
        pass

    def g(thing):
        thing.me = it  # noqa: F821
        gc.collect()
        yield 1
        gc.collect()
        yield 2

    def f():
        thing = Thing()
        ref = weakref.ref(thing)
        generator = g(thing)
        g.__globals__["it"] = generator
        out = list(generator)
        del g.__globals__["it"], generator, thing
        gc.collect()
        return out, ref()

    assert ge.evaluate(f) == ([1, 2], None)


def test_traced_threads_stay_with_cpython():
    lines = []

    def tracer(frame, event, arg):
        if frame.f_code is f.__code__:
            lines.append((event, frame.f_lineno - f.__code__.co_firstlineno))
        return tracer

    def f():
        x = 1
        return x

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        ge.evaluate(f)
    finally:
        sys.settrace(before)
    assert lines == [("call", 0), ("line", 1), ("line", 2), ("return", 2)]


def test_profile_function_set_inside():
    events = []

    def f():
        sys.setprofile(lambda frame, event, arg: events.append((event, frame.f_code.co_name)))
        g()
        sys.setprofile(None)

    def g():
        return 1

    f()
    expected, events[:] = list(events), []
    ge.evaluate(f)
    assert events == expected


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in 3.12")
def test_monitored_code_stays_with_cpython():
    calls = []

    def f():
        return len([])

    tool = 4
    sys.monitoring.use_tool_id(tool, "test")
    try:
        sys.monitoring.register_callback(
            tool, sys.monitoring.events.PY_START, lambda code, _: calls.append(code.co_name)
        )
        sys.monitoring.set_events(tool, sys.monitoring.events.PY_START)
        ge.evaluate(f)
        sys.monitoring.set_events(tool, 0)
        sys.monitoring.set_local_events(tool, f.__code__, sys.monitoring.events.PY_START)
        ge.evaluate(f)
        sys.monitoring.set_local_events(tool, f.__code__, 0)
    finally:
        sys.monitoring.free_tool_id(tool)
    assert calls.count("f") == 2


def test_exception_sent_to_the_thread():
    import ctypes

    class Sent(Exception):
        pass

    def f():
        identity = threading.get_ident()
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(identity), ctypes.py_object(Sent))
        for _ in range(1000):
            pass
        return "not reached"

    def caught():
        try:
            return f()
        except Sent:
            return "sent"

    assert ge.evaluate(caught) == "sent"


def test_modules_imported_under_the_evaluator():
    def f():
        for name in ("fractions", "statistics", "fractions"):
            sys.modules.pop(name, None)
        import fractions
        import statistics

        return fractions.Fraction(3, 6), statistics.mean([1, 2, 3])

    assert observe(lambda: ge.evaluate(f)) == observe(f)


def test_class_body_frames_and_exec_are_evaluated():
    source = "class A:\n    x = [i for i in range(10)]\n    def f(self):\n        return self.x[3]\nr = A().f()\n"

    def f():
        namespace = {}
        exec(source, namespace)
        return namespace["r"]

    assert _instructions(lambda: ge.evaluate(f)) > 30
    assert ge.evaluate(f) == 3
