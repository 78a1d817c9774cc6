"""What using graphlift costs a process: no heavy package, little time."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
HEAVY = ("sympy", "torch._dynamo", "torch._inductor")

USE = """
import os, sys
sys.path[:0] = [{tests!r}]
import build_folder
import torch
before = set(sys.modules)
import graphlift

net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3))
fn = graphlift.compile(net)
for rows in (2, 3, 5):
    loss = torch.nn.functional.cross_entropy(fn(torch.randn(rows, 4)), torch.zeros(rows, dtype=torch.long))
    loss.backward()

@graphlift.compile
def branch(x):
    y = x.sin() + 1
    return y if y.sum() > 0 else -y

branch(torch.ones(3))
graphlift.explain(branch)(torch.ones(3))
graphlift.mark_dynamic(torch.ones(3), 0)
graphlift.install()
torch.compile(lambda x: x + 1)(torch.ones(2))
graphlift.reset()
loaded = sorted(set(sys.modules) - before)
print("LOADED", *[name for name in {heavy!r} if name in loaded])
"""

TIME = """
import sys
sys.path[:0] = [{tests!r}]
import build_folder
import torch
import time
start = time.perf_counter()
import graphlift
print("SECONDS", time.perf_counter() - start)
"""


def run(program):
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    code = program.format(tests=tests, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    if "No module named 'graphlift._C'" in done.stderr or "cannot import name '_C'" in done.stderr:
        pytest.skip("graphlift._C is not built")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_heavy_is_imported():
    assert run(USE).split("LOADED")[1].split() == []


@pytest.mark.alone
def test_import_time():
    seconds = min(float(run(TIME).split("SECONDS")[1]) for _ in range(3))
    assert seconds < 0.15, seconds
