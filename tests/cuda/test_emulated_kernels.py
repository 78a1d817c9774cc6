"""Generated kernels without a GPU: results on an emulated driver are eager's. Where there is a GPU, see test_kernels.py."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("graphlift_runtime")
PARTS = 4

pytestmark = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "g++")) is None,
    reason="kernels are emulated by a C++ compiler, and there is none",
)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Compiled kernels, shared by all parts."""
    return tmp_path_factory.mktemp("emulated")


@pytest.mark.parametrize("part", range(PARTS))
def test_programs(folder, part):
    program = Path(__file__).parent / "emulated.py"
    done = subprocess.run(
        [sys.executable, str(program), "programs", str(part), str(PARTS)],
        env={**os.environ, "EMULATED_FOLDER": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "## " not in done.stdout, done.stdout
