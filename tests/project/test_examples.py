"""Each example checks itself; here they are run, small where they can be, under the strict setting."""

import os
import subprocess
import sys

import pytest
from source_tree import ROOT

pytest.importorskip("torch")
pytest.importorskip("graphlift._C", reason="graphlift._C is not built", exc_type=ImportError)

SMALL = {"train_mlp": ["--width", "256", "--steps", "3"], "train_classifier": ["--steps", "8"]}
RUNS = [(path.stem, SMALL.get(path.stem, [])) for path in sorted((ROOT / "examples").glob("*.py"))]
RUNS.append(("train_mlp", ["--width", "256", "--steps", "3", "--amp"]))


@pytest.mark.parametrize(
    "name, arguments", RUNS, ids=lambda value: value if isinstance(value, str) else " ".join(value)
)
def test_example(name, arguments):
    program = (
        "import sys, build_folder, runpy; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", program, str(ROOT / "examples" / f"{name}.py"), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
