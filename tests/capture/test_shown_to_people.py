"""print, loggers and warnings, with and without tensors: deferred in program order, not breaks."""

import contextlib
import io
import logging
import logging.handlers
import sys
import warnings

import pytest
import torch

import graphlift

LOGGER = logging.getLogger("graphlift_test.shown")


def prints_values(x):
    y = x + 1
    print("before", y, y.shape, x.shape[0], [1, {"a": 2.5}])
    y.add_(5)
    print(y, x, sep="|", end="!\n")
    x.mul_(2)
    print(x)
    return y * 2


def prints_a_list_that_grows(x):
    seen = [1]
    print(seen)
    seen.append(2)
    print(seen)
    return x + len(seen)


def prints_a_view(x):
    y = x * 2
    row = y[:1]
    print(row)
    y.zero_()
    print(row)
    return y


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("program", [prints_values, prints_a_list_that_grows, prints_a_view], ids=lambda f: f.__name__)
def test_what_is_printed(program, dynamic, capsys):
    compiled = graphlift.compile(program, fullgraph=True, dynamic=dynamic)
    for size in (3, 3, 4):
        x, same = torch.arange(float(size)), torch.arange(float(size))
        expected = program(x)
        shown = capsys.readouterr().out
        got = compiled(same)
        assert capsys.readouterr().out == shown
        assert torch.equal(got, expected) and torch.equal(x, same)


def test_a_text_that_shows_history_is_a_break(capsys):
    def shows_history(x):
        y = x * 2
        print(y)
        return y.sum()

    before = graphlift.counters()["graph_breaks"]
    graphlift.compile(shows_history)(torch.ones(2, requires_grad=True))
    assert graphlift.counters()["graph_breaks"] == before + 1 and "grad_fn" in capsys.readouterr().out


def logs(x):
    y = x + 1
    LOGGER.warning("y is %s", y)
    y.zero_()
    LOGGER.info("not shown %s", y)
    LOGGER.log(logging.ERROR, "at a level of its own")
    return logs_inside(y)


def logs_inside(y):
    LOGGER.error("the caller's line", stacklevel=2, exc_info=False)
    return y


@contextlib.contextmanager
def written_by_logger():
    """What LOGGER writes, with the lines that log; pytest's own handlers don't see it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(filename)s:%(lineno)d %(funcName)s: %(message)s"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LOGGER, "handlers", [handler])
        patch.setattr(LOGGER, "propagate", False)
        yield stream


def test_records_are_those_of_eager():
    with written_by_logger() as expected:
        logs(torch.ones(2))
    assert "y is tensor([2., 2.])" in expected.getvalue() and expected.getvalue().count(" logs:") == 3
    assert "not shown" not in expected.getvalue()
    compiled = graphlift.compile(logs, fullgraph=True)
    for _ in range(2):
        with written_by_logger() as stream:
            compiled(torch.ones(2))
        assert stream.getvalue() == expected.getvalue()


class Keeps(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record.getMessage())


@pytest.mark.parametrize("handler", [Keeps, lambda: logging.handlers.BufferingHandler(1000)], ids=["own", "buffering"])
def test_records_that_the_program_reads_are_there(handler):
    keeps = handler()
    records = keeps.records if isinstance(keeps, Keeps) else keeps.buffer
    LOGGER.addHandler(keeps)

    def program(x):
        LOGGER.warning("one")
        return x + len(records)

    try:
        breaks = graphlift.counters()["graph_breaks"]
        compiled = graphlift.compile(program)
        assert [compiled(torch.zeros(1)).item() for _ in range(3)] == [1, 2, 3]
        assert graphlift.counters()["graph_breaks"] > breaks
    finally:
        LOGGER.removeHandler(keeps)


def redirects(x):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print("inside", x.shape)
    print("behind")
    return x + 1, text.getvalue()


def assigns_stdout(x):
    text, before = io.StringIO(), sys.stdout
    print("before")
    sys.stdout = text
    try:
        print("inside")
    finally:
        sys.stdout = before
    return x + 1, text.getvalue()


def catches_warnings(x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("inside", stacklevel=1)
    return x + len(caught), len(caught)


def silences_a_logger(x):
    LOGGER.warning("before")
    LOGGER.disabled = True
    LOGGER.warning("not shown")
    LOGGER.disabled = False
    LOGGER.warning("behind")
    return x + 1, None


@pytest.mark.parametrize("program", [redirects, assigns_stdout, catches_warnings, silences_a_logger])
def test_where_it_is_shown_changes_inside(program, capsys):
    def told(function):
        with written_by_logger() as stream:
            y, text = function(torch.ones(2))
        shown = [line.split(": ")[-1] for line in stream.getvalue().splitlines()]
        return y.tolist(), text, capsys.readouterr().out, shown

    expected = told(program)
    graphs, breaks = graphlift.graph_count(), graphlift.counters()["graph_breaks"]
    compiled = graphlift.compile(program)
    assert [told(compiled) for _ in range(2)] == [expected] * 2
    assert graphlift.graph_count() > graphs and graphlift.counters()["graph_breaks"] > breaks


def test_a_stdout_of_the_programs_own(monkeypatch):
    class Counts(io.StringIO):
        written = 0

        def write(self, text):
            Counts.written += 1
            return super().write(text)

    def program(x):
        print("one")
        return x + Counts.written

    compiled = graphlift.compile(program)
    assert compiled(torch.zeros(1)).item() == 0
    monkeypatch.setattr(sys, "stdout", Counts())
    assert [compiled(torch.zeros(1)).item() for _ in range(2)] == [2, 4]  # the text and the end of the line


def warns_inside(x):
    warnings.warn("from inside", stacklevel=2)
    return x + 1


def warns(x):
    y = warns_inside(x)
    warnings.warn("deprecated", DeprecationWarning, stacklevel=1)
    return y * 2


@pytest.mark.parametrize("mode", ["always", "default", "module", "once", "ignore"])
def test_warnings_have_their_own_lines(mode):
    def told(function):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(mode)
            for _ in range(3):
                function(torch.ones(2))
        return [(str(w.message), w.category, w.lineno, w.filename) for w in caught]

    compiled = graphlift.compile(warns, fullgraph=True)
    assert told(compiled) == told(warns)
    assert told(compiled) == told(warns)


def test_a_warning_becomes_an_error():
    def recovers(x):
        try:
            warnings.warn("no", stacklevel=1)
        except UserWarning:
            return x + 3
        return x + 2

    compiled = graphlift.compile(recovers)
    with warnings.catch_warnings():
        for action, value in [("ignore", 3.0), ("ignore", 3.0), ("error", 4.0), ("error", 4.0), ("ignore", 3.0)]:
            warnings.resetwarnings()
            warnings.simplefilter(action)
            assert compiled(torch.ones(1)).item() == value
    assert graphlift.graph_count() >= 1


# What shows a text may be, or be steered by, code of the program's: it must see what eager shows it.

NOTES = {"step": 0, "seen": []}


def sees(*_):
    NOTES["seen"].append(NOTES["step"])
    return True


class Sees(logging.Formatter):
    def format(self, record):
        sees()
        return super().format(record)


class RecordThatSees(logging.LogRecord):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        sees()


class WarningThatSees(UserWarning):
    def __init__(self, *args):
        super().__init__(*args)
        sees()


class Callable:
    def __call__(self, text):
        sees()


class Writes:
    write = Callable()


class Forwards:
    def __getattr__(self, name):
        return sees


class Stdout(io.StringIO):
    pass


def own_write_of_an_instance():
    out = Stdout()
    out.write = sees
    return out


def steps_and_logs(x):
    y = x + 1
    NOTES["step"] = 1
    LOGGER.warning("a")
    NOTES["step"] = 2
    return y


def steps_and_prints(x):
    y = x + 1
    NOTES["step"] = 1
    print("a")
    NOTES["step"] = 2
    return y


def steps_and_warns(x):
    y = x + 1
    NOTES["step"] = 1
    warnings.warn("a", WarningThatSees, stacklevel=1)
    NOTES["step"] = 2
    return y


WATCHERS = {
    "filter of the logger": (steps_and_logs, lambda patch: patch.setattr(LOGGER, "filters", [sees])),
    "filter of a handler": (steps_and_logs, lambda patch: patch.setattr(LOGGER.handlers[0], "filters", [sees])),
    "formatter": (steps_and_logs, lambda patch: LOGGER.handlers[0].setFormatter(Sees())),
    "record": (steps_and_logs, lambda patch: patch.setattr(logging, "_logRecordFactory", RecordThatSees)),
    "warning": (steps_and_warns, lambda patch: None),
    "write that is no function": (steps_and_prints, lambda patch: patch.setattr(sys, "stdout", Writes())),
    "write that is forwarded": (steps_and_prints, lambda patch: patch.setattr(sys, "stdout", Forwards())),
    "write of an instance": (
        steps_and_prints,
        lambda patch: patch.setattr(sys, "stdout", own_write_of_an_instance()),
    ),
}


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("plain_first", [False, True], ids=["watched", "plain first"])
@pytest.mark.parametrize("watcher", WATCHERS)
def test_code_of_the_program_sees_what_it_sees_in_eager(watcher, plain_first):
    program, watch = WATCHERS[watcher]

    def told(function, watched):
        NOTES.update(step=0, seen=[])
        with written_by_logger(), pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True):
            if watched:
                watch(patch)
            y = function(torch.ones(2))
        return y.tolist(), NOTES["seen"], NOTES["step"]

    expected = told(program, True)
    assert set(expected[1]) == {1}
    graphs, breaks = graphlift.graph_count(), graphlift.counters()["graph_breaks"]
    compiled = graphlift.compile(program)
    if plain_first:
        told(compiled, False)
    assert [told(compiled, True) for _ in range(2)] == [expected] * 2
    assert graphlift.graph_count() > graphs and graphlift.counters()["graph_breaks"] > breaks


def turns_a_handler_off(x):
    LOGGER.warning("before")
    LOGGER.handlers[0].level = 100
    LOGGER.warning("not shown")
    LOGGER.handlers[0].level = 0
    return x + 1


def formats_in_another_way(x):
    LOGGER.warning("before")
    LOGGER.handlers[0].setFormatter(logging.Formatter("now %(message)s"))
    LOGGER.warning("behind")
    return x + 1


def ends_lines_in_another_way(x):
    LOGGER.warning("before")
    LOGGER.handlers[0].terminator = "!\n"
    return x + 1


def takes_the_handlers_away(x):
    LOGGER.warning("before")
    LOGGER.handlers.clear()
    return x + 1


def adds_a_filter(x):
    LOGGER.warning("before")
    LOGGER.filters.append(hides)
    return x + 1


def ignores_warnings_from_now_on(x):
    warnings.warn("before", stacklevel=1)
    warnings.filters.insert(0, ("ignore", None, Warning, None, 0))
    return x + 1


def hides(record):
    return False


STEERING = [
    turns_a_handler_off,
    formats_in_another_way,
    ends_lines_in_another_way,
    takes_the_handlers_away,
    adds_a_filter,
    ignores_warnings_from_now_on,
]


@pytest.mark.parametrize("program", STEERING, ids=lambda f: f.__name__)
def test_what_shows_it_changes_inside(program):
    def told(function):
        with written_by_logger() as stream, pytest.MonkeyPatch.context() as patch:
            patch.setattr(LOGGER, "filters", [])
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                y = function(torch.ones(2))
        return y.tolist(), stream.getvalue(), [str(each.message) for each in caught]

    expected = told(program)
    assert "before" in expected[1] or expected[2]
    graphs, breaks = graphlift.graph_count(), graphlift.counters()["graph_breaks"]
    compiled = graphlift.compile(program)
    assert [told(compiled) for _ in range(2)] == [expected] * 2
    assert graphlift.graph_count() > graphs and graphlift.counters()["graph_breaks"] > breaks
