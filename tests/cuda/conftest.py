"""Makes the corpus, and the samples of operators, importable by name."""

import pathlib
import sys
from importlib.util import find_spec

import pytest
import torch

for folder in ("cuda", "ops"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / folder))

# The corpus is run by a module that is built for tests.
collect_ignore = [] if find_spec("graphlift_runtime") else ["test_kernels.py"]


@pytest.fixture
def exact_products():
    """Not by monkeypatch, which deletes what torch's settings have by __getattr__."""
    settings = torch.backends.cuda.matmul
    before, settings.allow_tf32 = settings.allow_tf32, False
    yield
    settings.allow_tf32 = before
