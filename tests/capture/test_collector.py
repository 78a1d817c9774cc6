"""What the garbage collector runs comes between any two instructions: it is no part of the program."""

import gc
import sys

import pytest
import torch

import graphlift


class Cycle:
    """Dies in the collector, and says so."""

    def __init__(self, said):
        self.me, self.said = self, said

    def __del__(self):
        self.said.append("died")


def program(x):
    y = x + 1
    gc.collect()  # a break: it runs for real, and what it calls could be captured
    return y * 2


@pytest.mark.parametrize("runs", ["callback", "finalizer"])
def test_nothing_that_the_collector_runs_is_captured(runs):
    said = []

    def callback(phase, info):
        said.append(phase)

    def counts():
        graphlift.reset()
        before = graphlift.counters()
        compiled = graphlift.compile(program)
        for _ in range(2):
            if runs == "finalizer":
                Cycle(said)
            assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 4.0))
        after = graphlift.counters()
        return {name: after[name] - before[name] for name in ("captures", "graphs", "graph_breaks")}

    counts()  # finalizers of earlier tests
    plain = counts()
    del said[:]
    if runs == "callback":
        gc.callbacks.append(callback)
    try:
        watched = counts()
    finally:
        if runs == "callback":
            gc.callbacks.remove(callback)
    assert watched == plain and watched["graphs"] == 2 and watched["graph_breaks"] == 1
    assert {"callback": "start", "finalizer": "died"}[runs] in said


HEARD = []
LISTENING = []  # an audit hook can't be taken away


def hook(event, arguments):
    if LISTENING:
        HEARD.append(str(event))


def audited(x):
    name = id(audited) > 0
    return x * 2 + name


def test_audit_hooks_are_not_captured():
    sys.addaudithook(hook)
    LISTENING.append(True)
    try:
        compiled = graphlift.compile(audited, fullgraph=True)
        for _ in range(3):
            assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 3.0))
    finally:
        LISTENING.clear()
    assert HEARD
    assert graphlift.graph_count() == 1
