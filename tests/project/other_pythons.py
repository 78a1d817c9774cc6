"""Builds and tests the layers that see the interpreter on every other CPython (3.11 to 3.13) of this machine, without
torch; `make test` runs it. The layers above them are the same for each.

Python tests that need neither torch nor the package run too: they are found by their imports. An interpreter without
headers is left out. Exits non-zero when one fails; says so when there is none.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
VERSIONS = ((3, 11), (3, 12), (3, 13))
ASK = (
    "import sys, os, sysconfig; "
    "print(sys.implementation.name, *sys.version_info[:2], os.path.realpath(sys.executable), "
    "os.path.exists(os.path.join(sysconfig.get_paths()['include'], 'Python.h')))"
)
NEEDS_TORCH = re.compile(r"^\s*(import|from) (torch|graphlift)\b|graphlift_(tracer|runtime)|importorskip\(.torch", re.M)
TEST_PACKAGES = ["pytest>=8", "pytest-timeout", "pytest-xdist", "hypothesis"]
LAYERS = ("base", "cpython", "eval", "guards")
TARGETS = [f"{layer}_test" for layer in LAYERS] + ["graphlift_evaluator"]


def interpreters():
    """{version: path} of the CPythons that can be built against, without this one's version."""
    names = [f"python{major}.{minor}" for major, minor in VERSIONS]
    found = [shutil.which(name) for name in names]
    found += glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python"))
    chosen = {}
    for path in filter(None, found):
        done = subprocess.run([path, "-c", ASK], capture_output=True, text=True)
        words = done.stdout.split()
        if done.returncode or words[0] != "cpython" or words[-1] != "True":
            continue
        version = (int(words[1]), int(words[2]))
        if version in VERSIONS and version != sys.version_info[:2]:
            chosen.setdefault(version, words[3])
    return dict(sorted(chosen.items()))


def torch_free_tests():
    """Test files that use the evaluator's module without torch and without the package."""
    texts = {path: path.read_text() for path in sorted((ROOT / "tests").rglob("test_*.py"))}
    return [path for path, text in texts.items() if "graphlift_evaluator" in text and not NEEDS_TORCH.search(text)]


def pybind11_include():
    """The headers that this interpreter has: they serve every version."""
    import pybind11

    return pybind11.get_include()


def run(command, **arguments):
    """Prints and runs; raises when it fails."""
    print("+", " ".join(map(str, command)), flush=True)
    subprocess.run(list(map(str, command)), check=True, **arguments)


def check(version, python):
    """Builds, runs the C++ tests, then the Python tests in an environment of their own."""
    tools = Path(sys.executable).parent
    build = ROOT / "build" / f"cpython-{version[0]}{version[1]}-torch-free"
    run(
        [tools / "cmake", "-G", "Ninja", "-S", ROOT, "-B", build, f"-DPython_EXECUTABLE={python}"]
        + [
            f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}",
            "-DGRAPHLIFT_TORCH=OFF",
            "-DGRAPHLIFT_BUILD_TESTS=ON",
            "-DCMAKE_UNITY_BUILD=ON",
        ]
        + [f"-DGRAPHLIFT_PYBIND11_INCLUDE={pybind11_include()}"],
        stdout=subprocess.DEVNULL,
    )
    run([tools / "cmake", "--build", build, "--target", *TARGETS])
    run([tools / "ctest", "--test-dir", build, "--output-on-failure", "-R", f"^({'|'.join(LAYERS)})_test$"])
    files = torch_free_tests()
    if files:
        environment = build / "environment"
        has_tools = [environment / "bin" / "python", "-c", "import pytest, pytest_timeout, xdist, hypothesis"]
        if not environment.exists() or subprocess.run(has_tools, stderr=subprocess.DEVNULL).returncode:
            run([python, "-m", "venv", environment])
            run([environment / "bin" / "python", "-m", "pip", "install", "-q", *TEST_PACKAGES])
        variables = os.environ | {"GRAPHLIFT_BUILD": str(build)}
        run([environment / "bin" / "python", "-m", "pytest", "-n", "auto", *files], env=variables, cwd=ROOT)


def main():
    """All of them; the first failure ends it."""
    found = interpreters()
    if not found:
        print("no other CPython (3.11 to 3.13, with headers) here: the layers that see it are tested on this one alone")
    for version, python in found.items():
        check(version, python)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"failed: {' '.join(error.cmd)}")
