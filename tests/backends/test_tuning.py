"""`mode="max-autotune"`: products are measured while compiling, once; the choice is kept on disk, and results stay."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from closeness import close

import graphlift
from graphlift import _C, tuning

pytestmark = pytest.mark.skipif(
    _C.kernel_refusal() != "" or _C.onednn_refusal() != "",
    reason="one implementation of products alone: nothing to choose",
)

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import build_folder
import torch, graphlift
x, w, b = torch.randn(32, 48), torch.randn(48, 64), torch.randn(64)
function = lambda x, w, b: torch.tanh(torch.addmm(b, x, w))
assert torch.allclose(graphlift.compile(function, mode="max-autotune")(x, w, b), function(x, w, b), atol=1e-5)
print(graphlift._C.tunings())
"""


def run(folder, logs=""):
    """How many products a process measured, and what it said."""
    environment = dict(os.environ, GRAPHLIFT_CACHE_DIR=str(folder), GRAPHLIFT_STRICT="1", GRAPHLIFT_LOGS=logs)
    command = [sys.executable, "-c", PROGRAM, str(Path(__file__).parent.parent)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return int(done.stdout), done.stderr


def test_a_second_process_measures_nothing_until_the_choice_is_damaged(tmp_path):
    assert run(tmp_path)[0] == 1
    assert run(tmp_path)[0] == 0
    (kept,) = (tmp_path / "tuned").iterdir()
    whole = kept.read_bytes()
    for damaged in (whole[:-1], b"", whole[:-1] + bytes([whole[-1] ^ 1])):
        kept.write_bytes(damaged)
        assert run(tmp_path)[0] == 1
    assert (tmp_path / "tuned").stat().st_mode & 0o777 == 0o700


def test_an_unknown_choice_is_measured_again(tmp_path, monkeypatch):
    monkeypatch.setattr(tuning, "read", lambda text: "an implementation of tomorrow")
    before = _C.tunings()
    x, w = torch.randn(17, 48), torch.randn(48, 33)
    got = graphlift.compile(torch.mm, mode="max-autotune")(x, w)
    assert not close(x @ w, got) and _C.tunings() == before + 1


def test_progress_and_choices_are_shown_where_logs_ask(tmp_path):
    _, quiet = run(tmp_path)
    assert "measuring" not in quiet
    os.unlink(next((tmp_path / "tuned").iterdir()))
    _, said = run(tmp_path, logs="perf_hints")
    assert "measured f32 32x64x48" in said
    pytest.importorskip("tqdm")
    assert "graphlift: measuring" in said


def test_gradients_under_tuning(monkeypatch):
    monkeypatch.setattr(tuning, "read", lambda text: None)

    def step(function):
        torch.manual_seed(3)
        x, w, v = (torch.randn(*shape, requires_grad=True) for shape in ((24, 20), (20, 28), (28, 12)))
        out = function(x, w, v)
        out.pow(2).sum().backward()
        return [out.detach(), x.grad, w.grad, v.grad]

    def function(x, w, v):
        return torch.relu(x @ w) @ v

    before = _C.tunings()
    assert not close(step(function), step(graphlift.compile(function, mode="max-autotune")))
    measured = _C.tunings()
    assert measured > before
    assert not close(step(function), step(graphlift.compile(function, mode="max-autotune-no-cudagraphs")))
    assert _C.tunings() == measured, "the process knows them"


def test_other_modes_measure_nothing():
    before = _C.tunings()
    x, w = torch.randn(19, 48), torch.randn(48, 33)
    for mode in ("default", "reduce-overhead"):
        natives = graphlift.counters()["natives"]
        assert not close(x @ w, graphlift.compile(lambda x, w: x @ w, mode=mode)(x, w))
        assert graphlift.counters()["natives"] == natives + 1
    assert _C.tunings() == before
