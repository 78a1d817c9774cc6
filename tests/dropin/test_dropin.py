"""`python -m graphlift` on programs of other packages, unmodified: the losses are those of a run without a compiler.

GRAPHLIFT_DROPIN_PYTHON: an interpreter that has the packages; else it is this one. What is missing is skipped.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
PYTHON = os.environ.get("GRAPHLIFT_DROPIN_PYTHON", sys.executable)

# script -> what it needs; at least so many calls that hit a region; at most so many graphs and breaks
PROGRAMS = {
    "hf_trainer": ("transformers accelerate", 10, 2, 0),
    "lightning_fit": ("lightning", 60, 5, 5),  # Lightning's own log() is marked not to be compiled
    "accelerate_loop": ("accelerate", 30, 2, 0),
    "timm_step": ("timm torchvision", 3, 2, 0),
}

# What `python -m graphlift script` runs, and then what the compiler counted.
COMPILED = """
import sys
sys.path.insert(0, {tests!r})
import build_folder, json
from graphlift.__main__ import main
main([{script!r}])
import graphlift
print("counters", json.dumps(graphlift.counters()))
"""


def run(*arguments):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GRAPHLIFT_STRICT": "1"}
    done = subprocess.run([PYTHON, *arguments], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    lines = (line.partition(" ") for line in done.stdout.splitlines())
    return {name: json.loads(rest) for name, _, rest in lines if name in ("losses", "counters")}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.timeout(600)
def test_losses_are_those_of_a_plain_run(name):
    needs, hits, graphs, breaks = PROGRAMS[name]
    script = str(HERE / f"{name}.py")
    imports = f"import {needs.replace(' ', ', ')}"
    if subprocess.run([PYTHON, "-c", imports], capture_output=True).returncode:
        pytest.skip(f"{needs} can't be imported by {PYTHON}")
    plain = run(script, "--plain")["losses"]
    compiled = run("-c", COMPILED.format(tests=str(HERE.parent), script=script))
    assert compiled["losses"] == pytest.approx(plain, rel=1e-3, abs=1e-4)
    counts = compiled["counters"]
    assert 1 <= counts["graphs"] <= graphs and counts["hits"] >= hits, counts
    assert counts["graph_breaks"] <= breaks and counts["internal_errors"] == counts["given_up"] == 0, counts
