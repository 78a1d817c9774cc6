"""Chooses what graphlift._C is: the built one; a double where it is not built, or on demand (GRAPHLIFT_DOUBLE=1)."""

import importlib
import os
import sys

import torch  # noqa: F401  (before graphlift._C)


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
