"""print, loggers and warnings, with and without tensors: deferred in program order, not breaks."""

import logging
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


def test_loggers_get_the_tensors_of_then(caplog):
    def logs(x):
        y = x + 1
        LOGGER.warning("y is %s", y)
        y.zero_()
        LOGGER.info("not shown %s", y)
        return y

    compiled = graphlift.compile(logs, fullgraph=True)
    for _ in range(2):
        compiled(torch.ones(2))
    assert [record.getMessage() for record in caplog.records] == ["y is tensor([2., 2.])"] * 2


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


def test_a_warning_that_is_an_error():
    def recovers(x):
        try:
            warnings.warn("no", stacklevel=1)
        except UserWarning:
            return x + 3
        return x + 2

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = graphlift.compile(recovers)
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 4.0))
