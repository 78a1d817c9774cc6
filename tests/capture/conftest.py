"""Each test of captures starts and ends without regions."""

import gc

import pytest
import torch  # noqa: F401

import graphlift


@pytest.fixture(autouse=True)
def fresh_state():
    """Each test starts and ends without regions. What hypothesis has the collector call is no part of a test: its frames
    would be captured, and counted, wherever a collection falls."""
    graphlift.reset()
    callbacks = gc.callbacks[:]
    gc.callbacks.clear()
    yield
    gc.callbacks[:] = callbacks
    graphlift.reset()


@pytest.fixture
def logged(caplog):
    """Turns logs on; `logged(name)` gives the messages so far."""
    yield lambda name: [record.getMessage() for record in caplog.records if record.name == f"graphlift.{name}"]
    graphlift.set_logs()
