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
