"""The tests of the user's side run against the built graphlift._C; against a double where it is not built, or on demand
(GRAPHLIFT_DOUBLE=1).
"""

import importlib
import os
import sys
from pathlib import Path

import pytest
import torch  # noqa: F401  (before graphlift._C)

sys.path.insert(0, str(Path(__file__).parent))


def _use_double():
    for name in [name for name in sys.modules if name.split(".")[0] == "graphlift"]:
        del sys.modules[name]
    importlib.import_module("native_double").install()


if os.environ.get("GRAPHLIFT_DOUBLE") == "1":
    _use_double()
else:
    try:
        importlib.import_module("graphlift")
    except ImportError as error:
        if "_C" not in str(error):
            raise
        _use_double()


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
