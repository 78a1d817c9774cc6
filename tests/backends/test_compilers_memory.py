"""The code of LLVM is not kept in the process's memory once kernels are made, and is there again for the next ones."""

import os
import subprocess
import sys

import pytest

from graphlift import _C

pytestmark = [
    pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}"),
    pytest.mark.skipif(sys.platform != "linux", reason="says how libraries are mapped on Linux"),
]

PROGRAM = """
import re
import torch
import graphlift

def mapped():
    kib, ours = 0, False
    for line in open("/proc/self/smaps"):
        if re.match("[0-9a-f]+-", line):
            ours = "libllvmlite" in line and " r-xp " in line
        elif ours and line.startswith("Rss:"):
            kib += int(line.split()[1])
    return kib

def made(start):
    def function(x):
        for i in range(12):  # each kernel another one: enough that giving back is worthwhile on any machine
            y = x @ x.t() * (start + i) + x.exp()
            for _ in range(i + 1):
                y = y.tanh()
            x = y
        return x
    return function

x, most = torch.randn(64, 64), []
for start in (0.5, 20.5):
    function = made(start)
    torch.testing.assert_close(graphlift.compile(function)(x), function(x))
    most.append(mapped())
print(max(most), graphlift.counters()["kernels"])
"""


def test_pages_are_given_back(tmp_path):
    places = os.pathsep.join(path for path in sys.path if path)
    environment = os.environ | {"PYTHONPATH": places, "GRAPHLIFT_CACHE_DIR": str(tmp_path), "GRAPHLIFT_STRICT": "1"}
    command = [sys.executable, "-c", "import build_folder\n" + PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    kib, kernels = map(int, done.stdout.split())
    assert kernels >= 20
    assert kib < 8 << 10, "it is 50 MiB while kernels are made"
