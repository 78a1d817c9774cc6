"""The table of known C callables: every row names something in this Python and torch, or is listed with its reason."""

import importlib
import sys

from graphlift import _C

# Rows that other versions have. Prefix of the path -> (Python, torch) since and until; None: open.
VERSIONS = {}
# Modules that only some builds have.
OPTIONAL = ()


def load_modules_of(paths):
    """A row resolves once its module is loaded; the program that calls it has loaded it."""
    for path in paths:
        module = path.rpartition(".")[0]
        while module and module not in sys.modules:
            try:
                importlib.import_module(module)
            except ImportError:
                module = module.rpartition(".")[0]


def test_rows_are_there_once():
    paths = _C.callables()
    assert len(paths) > 300
    twice = {path for path in paths if paths.count(path) > 1}
    assert not twice


def test_every_row_resolves():
    load_modules_of(_C.callables())
    assert _C.unresolved_callables() == []
