"""The tests of the user's side: native_choice.py says what they run against."""

import importlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
importlib.import_module("native_choice")


@pytest.fixture
def native():
    """graphlift._C, real or not."""
    return importlib.import_module("graphlift._C")


@pytest.fixture
def double(native):
    """The double; a test that asks for it is skipped where graphlift._C is real."""
    if not getattr(native, "double", False):
        pytest.skip("looks into the double")
    return native
