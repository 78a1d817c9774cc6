"""Numbers and texts whose class is not Python's own, inside calls of C code; what symbols look like to the program."""

import array
import decimal
import fractions

import numpy as np
import pytest
import torch

import graphlift


class Int(int):
    pass


class Float(float):
    pass


class Complex(complex):
    pass


class Text(str):
    pass


def text(n):
    return Text("a" * int(n))


# How a value is made of a number, and what a program does with it and a tensor.
PROGRAMS = {
    "int": (Int, lambda x, v: x * int(v)),
    "float": (Float, lambda x, v: x * float(v)),
    "complex": (Complex, lambda x, v: x * v.real),
    "str": (text, lambda x, v: x * len(str(v))),
    "max": (Int, lambda x, v: x * max(v, 1)),
    "sum": (Int, lambda x, v: x * sum([v, 1])),
    "pow": (Float, lambda x, v: x * pow(v, 2)),
    "abs": (Float, lambda x, v: x * abs(v)),
    "round": (Float, lambda x, v: x * round(v)),
    "hash": (Int, lambda x, v: x * hash(v)),
    "upper": (text, lambda x, v: x * len(str.upper(v))),
    "format": (Int, lambda x, v: x * len(f"{v:>{v}}")),
    "join": (text, lambda x, v: x * len("".join([v, v]))),
    "range": (Int, lambda x, v: x * len(range(v))),
    "index": (Int, lambda x, v: x * [10, 20, 30, 40, 50, 60, 70, 80, 90][v]),
    "key": (Int, lambda x, v: x * {0: 1, 5: 2, 6: 3, 7: 4}[v]),
    "mul": (Int, lambda x, v: x * v),
    "add": (Float, lambda x, v: x + v),
    "full": (Int, lambda x, v: torch.full((2,), v)),
    "shape": (Int, lambda x, v: torch.ones(v * 2).sum() + x),
    "greater": (Int, lambda x, v: x if v > 6 else x * 2),
    "equal": (text, lambda x, v: x if v == "aaaaaa" else x * 2),
    "truth": (Int, lambda x, v: x if v else x * 2),
    "member": (Int, lambda x, v: x if v in [5, 6] else x * 2),
    "member of a set": (Int, lambda x, v: x if v in {5, 6} else x * 2),
    "tensor of a list": (np.float64, lambda x, v: torch.tensor([v, 1.0]) + x),
    "tensor of a tuple": (np.float64, lambda x, v: x * torch.tensor((v, 2.0))),
    "tensor of arrays": (lambda n: np.ones(2) * n, lambda x, v: torch.tensor([v, v])),
    "tensor index": (np.int64, lambda x, v: torch.arange(10.0)[v] + x),
    "tensor index in a list": (np.int64, lambda x, v: torch.arange(10.0)[[v, 0]] + x),
    "tensor slice": (np.int64, lambda x, v: torch.arange(10.0)[:v].sum() + x),
    "index of a list": (np.int64, lambda x, v: x * [10, 20, 30, 40, 50, 60, 70, 80, 90][v]),
    "key of a dict": (np.int64, lambda x, v: x * {0: 1, 5: 2, 6: 3, 7: 4}[v]),
    "sum of a list": (np.float64, lambda x, v: x * sum([v, 1.0])),
    "largest": (np.float64, lambda x, v: x * max([v, 1.0])),
    "item assigned": (np.int64, lambda x, v: torch.zeros(10).index_fill(0, torch.tensor([v]), 1.0)),
    "a number of numpy": (np.float32, lambda x, v: x + v),
    "as_tensor": (lambda n: np.ones(2) * n, lambda x, v: torch.as_tensor(v) + x),
    "array": (lambda n: array.array("d", [n, n]), lambda x, v: torch.tensor(v) + x),
    "bytearray": (lambda n: bytearray([int(n), int(n)]), lambda x, v: torch.tensor(list(v)) + x),
    "fraction": (lambda n: fractions.Fraction(int(n), 2), lambda x, v: x * float(v)),
    "decimal": (decimal.Decimal, lambda x, v: x * float(v)),
}


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_value_of_each_call_is_used(name):
    make, program = PROGRAMS[name]
    expected = [program(torch.ones(2), make(n)) for n in (5, 6, 7, 0)]
    assert any(not torch.equal(one, expected[0]) for one in expected[1:])
    before = graphlift.counters()
    compiled = graphlift.compile(program)
    for n, value in zip((5, 5, 6, 7, 0), (expected[0], *expected), strict=True):
        got = compiled(torch.ones(2), make(n))
        assert got.dtype == value.dtype and torch.equal(got, value)
    after = graphlift.counters()
    assert after["graphs"] > before["graphs"] or after["graph_breaks"] > before["graph_breaks"]


ASKED = {
    "as_integer_ratio": (0.5, lambda n: n.as_integer_ratio()),
    "is_integer": (0.5, lambda n: n.is_integer()),
    "hex": (0.5, lambda n: n.hex()),
    "conjugate": (0.5, lambda n: (n.conjugate(), n.real, n.imag)),
    "format": (0.5, lambda n: f"{n:.2f} {n}"),
    "rounding": (0.5, lambda n: (round(n, 1), int(n), n % 1, divmod(n, 1), n.__ceil__())),
    "node of a float": (0.5, lambda n: (hasattr(n, "node"), hasattr(n, "hex"), n.__class__, bool(n))),
    "isinstance of a float": (0.5, lambda n: (isinstance(n, torch.SymFloat), isinstance(n, (float, str)))),
    "bit_length": (5, lambda n: (n.bit_length(), n.to_bytes(2, "big"), n.numerator)),
    "node": (5, lambda n: (hasattr(n, "node"), getattr(n, "hint", 5), n.__class__, type(n))),
    "isinstance": (5, lambda n: (isinstance(n, torch.SymInt), isinstance(n, int), isinstance(n, (torch.SymInt, str)))),
}


@pytest.mark.parametrize("name", ASKED)
def test_numbers_that_vary_look_like_numbers(name):
    first, ask = ASKED[name]

    def program(x, n):
        return x * n, ask(n)

    compiled = graphlift.compile(program)
    for step in range(5):
        n = first + step
        got, expected = compiled(torch.ones(2), n), program(torch.ones(2), n)
        assert torch.equal(got[0], expected[0]) and got[1] == expected[1]
    assert graphlift.graph_count() >= 2


def test_a_name_that_numbers_lack():
    compiled = graphlift.compile(lambda x, n: (x * n, n.node))
    for n in (0.5, 1.5, 5, 6):
        with pytest.raises(AttributeError, match=f"'{type(n).__name__}' object has no attribute 'node'"):
            compiled(torch.ones(2), n)
