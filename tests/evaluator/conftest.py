"""The evaluator's tests need its module, graphlift_evaluator, and no torch."""

import pytest

pytest.importorskip("graphlift_evaluator")
