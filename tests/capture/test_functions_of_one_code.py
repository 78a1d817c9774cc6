"""Functions that share their code and differ in the rest: globals, default values, closures."""

import types

import pytest
import torch

import graphlift


@graphlift.disable
def opaque(x):
    return x


def helper(x):
    y = opaque(x)
    return y + 1


def template(x, a=1, *, b=2):
    y = x * 2 + a
    return y * FACTOR + b  # noqa: F821


def breaking(x, a=1, *, b=2):
    y = helper(x * 2)
    return y * FACTOR + a + b  # noqa: F821


def made(code_of, factor, a=1, b=2):
    names = {"FACTOR": factor, "helper": helper, "__builtins__": __builtins__}
    function = types.FunctionType(code_of.__code__, names, argdefs=(a,))
    function.__kwdefaults__ = {"b": b}
    return function


def closures(code_of):
    def make(n):
        def function(x):
            y = helper(x * 3) if code_of is breaking else x * 3
            return y + n

        return function

    return [make(2.0), make(3.0)]


def captured(functions):
    def program(x, i):
        return functions[i](x.sin()) * 2

    return program


def run_for_real(functions):
    @graphlift.disable
    def call(function, x):
        return function(x)

    def program(x, i):
        return call(functions[i], x.sin()) * 2

    return program


def through_a_break(functions):
    def program(x, i):
        y = opaque(x * 3)
        z = functions[i](y)
        return z.cos()

    return program


MAKERS = {
    "globals": lambda code_of: [made(code_of, 2), made(code_of, 3)],
    "defaults": lambda code_of: [made(code_of, 2, a=5), made(code_of, 2, a=6)],
    "keyword defaults": lambda code_of: [made(code_of, 2, b=5), made(code_of, 2, b=6)],
    "closures": closures,
}


@pytest.mark.parametrize("way", [captured, run_for_real, through_a_break], ids=lambda way: way.__name__)
@pytest.mark.parametrize("code_of", [template, breaking], ids=lambda code_of: code_of.__name__)
@pytest.mark.parametrize("differ_in", MAKERS)
def test_each_gets_its_own(way, code_of, differ_in):
    program = way(MAKERS[differ_in](code_of))
    compiled = graphlift.compile(program)
    x = torch.linspace(-1, 1, 4)
    for i in (0, 1, 0, 1, 1, 0):
        torch.testing.assert_close(compiled(x, i), program(x, i))
    counts = graphlift.counters()
    assert counts["graphs"] >= 2 and counts["given_up"] == 0 and counts["hits"] > 0
