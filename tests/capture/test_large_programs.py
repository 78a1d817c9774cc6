"""Programs of many layers: what capture does grows as the program does, and so do guards."""

import time

import pytest
import torch
from judging import check_module

import graphlift


class Norms(torch.nn.Module):
    """Layers that each write to buffers and to an attribute."""

    def __init__(self, count):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.BatchNorm1d(4) for _ in range(count))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x) + x
            layer.calls = 1
        return x


def seconds(make, count):
    best = float("inf")
    for _ in range(3):
        graphlift.reset()
        compiled = graphlift.compile(make(count))
        begin = time.process_time()
        compiled(torch.randn(8, 4))
        best = min(best, time.process_time() - begin)
        assert graphlift.graph_count() == 1
    return best


def test_layers_that_write_are_equal_to_eager():
    check_module(lambda: Norms(12), lambda: (torch.randn(8, 4),), calls=4, graphs=1)


@pytest.mark.alone
def test_the_first_call_grows_as_the_program_does():
    few, many = seconds(Norms, 20), seconds(Norms, 160)
    assert many < 8 * 3 * few, f"{few:.3f} s for 20 layers, {many:.3f} s for 160"


def test_guards_on_what_is_written_are_few():
    guards = graphlift.explain(Norms(60))(torch.randn(8, 4)).guards
    assert 60 < len(guards) < 60 * 60
    assert len([guard for guard in guards if "!=" in guard or " is not " in guard]) < 60
