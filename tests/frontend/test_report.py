"""explain: what the C++ side noted becomes a report for programs and for eyes."""

import pytest
import torch

import graphlift
from graphlift.report import make_report

EVENTS = [
    {
        "kind": "graph",
        "file": "a.py",
        "line": 3,
        "forward": "graph(x)",
        "backward": "graph(g)",
        "calls": 2,
        "guards": ["p", "q"],
    },
    {"kind": "break", "file": "a.py", "line": 4, "reason": "why", "hint": "do", "stack": ["a.py:4 in f"]},
    {"kind": "graph", "file": "a.py", "line": 5, "forward": "graph(y)", "calls": 1, "guards": []},
    {"kind": "give_up", "file": "a.py", "line": 6, "reason": "limit"},
]


def test_report():
    report = make_report(EVENTS)
    assert (report.graph_count, report.graph_break_count, report.op_count, report.guards) == (2, 1, 3, ["p", "q"])
    assert report.break_reasons[0].reason == "why"
    assert report.summary().split("\n") == [
        "2 graphs, 1 graph break, 3 operator calls, 2 guards",
        "graph 0 at a.py:3: 2 operator calls, with backward",
        "graph 1 at a.py:5: 1 operator call",
        "graph break 0 at a.py:4: why",
        "    a.py:4 in f",
        "    hint: do",
        "give_up at a.py:6: limit",
    ]
    text = str(report)
    for part in ("graph(x)", "graph(g)", "--- graph 0, guards\np\nq"):
        assert part in text


def f(x):
    return x * 2 + 1


def test_explain_calls_once():
    calls = []

    class Net(torch.nn.Module):
        def forward(self, x):
            return x * 2

    for thing in (f, graphlift.compile(f), Net(), graphlift.compile(Net()), Net().forward):
        report = graphlift.explain(thing)(torch.ones(2))
        assert report.graph_count == 1 and report.graph_break_count == 0, str(report)
        assert "1 graph, " in str(report)
        calls.append(report)
    assert len(calls) == 5


def test_explain_lets_exceptions_pass():
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        graphlift.explain(fails)(torch.ones(1))
    assert graphlift.explain(f)(torch.ones(1)).graph_count == 1


def test_explain_checks_arguments_at_once():
    with pytest.raises(ValueError, match="valid modes"):
        graphlift.explain(f, mode="fastest")
