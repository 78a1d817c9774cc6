"""The table of known C callables: every row names something in this Python and torch, or is listed with its reason."""

import importlib
import sys

import torch

from graphlift import _C

# Rows that other versions or builds have: path -> whether this one has it.
ELSEWHERE = {
    "_sre.template": sys.version_info >= (3, 12),
    "torch._C._cuda_getDevice": torch.backends.cuda.is_built(),
    "torch._C._cuda_getDeviceCount": torch.backends.cuda.is_built(),
    # Of torch 2.14 and later.
    "torch.utils.checkpoint._checkpoint_without_reentrant_generator_impl": torch.__version__ >= (2, 14),
}


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


def test_every_row_resolves_or_belongs_to_another_version():
    load_modules_of(_C.callables())
    assert set(ELSEWHERE) <= set(_C.callables())
    assert set(_C.unresolved_callables()) == {path for path, here in ELSEWHERE.items() if not here}
