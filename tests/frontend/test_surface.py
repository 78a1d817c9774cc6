"""The double has what the package uses of graphlift._C, and nothing that the real module lacks."""

import inspect
import re
import types
from pathlib import Path

import native_double
import pytest

PACKAGE = Path(__file__).parent.parent.parent / "pyfrontend" / "graphlift"


def used():
    """The names that the package takes from _C."""
    return {name for file in PACKAGE.glob("*.py") for name in re.findall(r"\b_C\.(\w+)", file.read_text())} - {"pyi"}


def offered():
    """The names that the double has."""
    own = {name for name, value in vars(native_double).items() if not isinstance(value, types.ModuleType)}
    return {name for name in own if not name.startswith("_")} - {"GRAPHLIFT_MODULE", "install"}


def test_the_package_uses_what_the_double_has():
    torchs = {name for name in used() if name.startswith("_")}  # torch._C's
    assert torchs == {
        "_cuda_beginAllocateCurrentThreadToPool",
        "_cuda_clearCublasWorkspaces",
        "_cuda_endAllocateToPool",
        "_cuda_releasePool",
        "_get_tracing_state",
        "_nn",
    }
    assert used() - torchs == offered()


def test_the_real_module_has_it(native):
    if getattr(native, "double", False):
        pytest.skip("graphlift._C is not built")
    assert not offered() - set(dir(native))
    for name in offered():
        assert callable(getattr(native, name)) == callable(getattr(native_double, name)), name
    assert set(native.log_table()) == set(native_double.log_table())
    assert inspect.isclass(native.CompiledFunction)
