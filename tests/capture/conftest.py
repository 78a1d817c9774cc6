"""Each test of captures starts and ends without regions."""

import pytest
import torch  # noqa: F401

import graphlift


@pytest.fixture(autouse=True)
def fresh_state():
    """Each test starts and ends without regions."""
    graphlift.reset()
    yield
    graphlift.reset()
