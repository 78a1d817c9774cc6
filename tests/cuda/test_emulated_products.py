"""Products through an emulated cuBLASLt: what it is told, results as eager's, and what is measured and remembered."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("graphlift_runtime")
HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "g++")) is None,
    reason="the library is emulated by a C++ compiler, and there is none",
)

# Per program: products of forward and backward as the library counts them. "NxMxK epilogue"; bias 4, relu 2, gelu 32, kept 128,
# its gradient 192, the bias's gradient 512.
TOLD = {
    "mm rows rows float32": "40x16x24 1, 24x16x40 1, 40x24x16 1",
    "linear bfloat16": "32x24x16 4, 16x24x32 1, 16x32x24 512",
    "relu float16": "32x24x16 6, 16x24x32 1, 16x32x24 512",
    "gelu bfloat16": "32x24x16 164, 16x24x32 1, 16x32x24 512",
    "gelu, no gradients bfloat16": "32x24x16 36",
    "gelu, no gradients float32": "32x24x16 4",
    "residual, relu float64": "32x8x16 6 beta 1, 16x8x32 1, 16x32x8 512",
    "difference float32": "32x8x16 1 beta -1, 32x16x8 1, 16x8x32 1",
    "scaled float32": "32x8x16 4 alpha 0.125, 32x16x8 1, 16x8x32 1",
    "widened gradients float32": "32x12x16 4, 16x12x32 1, 16x32x12 512",
    "widened float16": "32x8x16 1, 32x16x8 1, 16x8x32 1",
    "addmm float32": "32x8x16 1 alpha 2 beta 0.5, 16x8x32 1, 32x16x8 1",
    "one b for all float16": "32x24x16 1, 32x16x24 1, 16x24x32 1",
    "heads bfloat16": "5x5x8 of 8 1 alpha 0.25, 5x8x5 of 8 1, 8x5x5 of 8 1",
    "block float16": "64x12x16 164, 16x12x64 4 beta 1, 64x16x12 512, 64x12x16 192, 16x64x12 512, 16x12x64 1 beta 1",
    "empty (8, 0, 16) float32": "",
}


def told(line):
    """One product, shortened as in TOLD."""
    found = re.fullmatch(
        r"type \d+ compute \d+ (\S+) batch (\d+) trans \d\d epilogue (\d+) alpha (\S+) beta (\S+)", line
    )
    sizes, batch, epilogue, alpha, beta = found.groups()
    out = f"{sizes} of {batch} {epilogue}" if batch != "1" else f"{sizes} {epilogue}"
    return out + (f" alpha {alpha}" if alpha != "1" else "") + (f" beta {beta}" if beta != "0" else "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("emulated")


def run(folder, *arguments, **environment):
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, "EMULATED_FOLDER": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done


def test_products_equal_eager(folder):
    done = run(folder, HERE / "emulated.py", "products", 0, 4)
    assert "## " not in done.stdout, done.stdout


def test_what_the_library_is_told(folder):
    lines = run(folder, HERE / "emulated.py", "told", *TOLD).stdout.splitlines()
    got, name = {}, None
    for line in lines:
        if line in TOLD:
            name, got[line] = line, []
        elif line:
            got[name].append(told(line))
    assert {name: ", ".join(sorted(calls)) for name, calls in got.items()} == {
        name: ", ".join(sorted(filter(None, calls.split(", ")))) for name, calls in TOLD.items()
    }


def test_fused_products_are_no_less_exact(folder):
    """What stands behind a product is computed before it is rounded to 16 bits, not behind another rounding."""
    *errors, count = run(folder, HERE / "emulated.py", "rounded").stdout.splitlines()
    for eager, ours in (map(float, line.split()) for line in errors):
        assert ours <= 1.02 * eager, errors
    assert len(errors) == 6 and int(count) >= 6


def test_what_is_measured_and_when(folder):
    """Once in a process: the rows' two kernels; each product, what finishes it apart from it, and nothing of no size."""
    counts = dict(line.split(": ", 1) for line in run(folder, HERE / "emulated.py", "measured").stdout.splitlines())
    first = {name: int(text.split(": ")[0]) for name, text in counts.items()}
    assert all(text.split(": ")[1] == "0" for text in counts.values()), counts
    assert first["rows"] == 2 and first["block float16"] >= 6 and first["empty (8, 0, 16) float32"] == 0, counts


def test_without_the_library_products_are_torchs(folder):
    done = run(folder, HERE / "emulated.py", "products", 0, 40, EMULATED_WITHOUT="libcublasLt.so.13")
    assert "## " not in done.stdout, done.stdout
