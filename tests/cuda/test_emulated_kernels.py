"""Generated kernels without a GPU: results on an emulated driver are eager's.

A third of the programs, since each kernel costs a compilation; `emulated.py` by hand runs all, and operators and random
programs. Where there is a GPU, test_kernels.py runs them on it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("graphlift_runtime")
PARTS = 3

pytestmark = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "g++")) is None,
    reason="kernels are emulated by a C++ compiler, and there is none",
)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Where compiled kernels go."""
    return tmp_path_factory.mktemp("emulated")


@pytest.mark.parametrize("kind, parts", [("programs", PARTS), ("tiled", 3 * PARTS)])
def test_programs(folder, kind, parts):
    program = Path(__file__).parent / "emulated.py"
    done = subprocess.run(
        [sys.executable, str(program), kind, "0", str(parts)],
        env={**os.environ, "EMULATED_FOLDER": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "## " not in done.stdout, done.stdout
