"""Logs: artifacts by name, torch's line format, the program's own logging respected, the environment read."""

import logging
import os
import re
import subprocess
import sys

import pytest

import graphlift
from graphlift import logs


@pytest.fixture(autouse=True)
def off_again():
    yield
    graphlift.set_logs()


def test_set_logs_turns_on_what_was_named(caplog):
    graphlift.set_logs("graph_breaks", guards=True, recompiles=False)
    for artifact in ("graph_breaks", "guards", "recompiles"):
        logs.emit(artifact, f"about {artifact}\n")
    assert [record.name for record in caplog.records] == ["graphlift.graph_breaks", "graphlift.guards"]
    assert caplog.messages == ["about graph_breaks", "about guards"]
    graphlift.set_logs()
    logs.emit("graph_breaks", "not this")
    assert len(caplog.records) == 2


def test_unknown_artifact_names_the_valid_ones():
    for call in (lambda: graphlift.set_logs("graphs"), lambda: graphlift.set_logs(graphs=False)):
        with pytest.raises(ValueError) as caught:
            call()
        assert all(name in str(caught.value) for name in logs.ARTIFACTS)


def test_what_the_other_side_is_told(double):
    graphlift.set_logs("graph_breaks", "+guards", graph=True, bytecode=False)
    assert double._state["logs"] == "-all,graph_breaks,+guards,graph"
    graphlift.set_logs()
    assert double._state["logs"] == "-all"


def test_artifacts_have_torchs_names():
    names = (
        "graph_breaks",
        "recompiles",
        "guards",
        "graph",
        "graph_code",
        "aot_graphs",
        "output_code",
        "bytecode",
        "perf_hints",
    )
    assert tuple(logs.ARTIFACTS) == names and all(logs.ARTIFACTS.values())


def test_format():
    record = logging.LogRecord("graphlift.guards", logging.DEBUG, "", 0, "a\nb", (), None)
    lines = logs._Format().format(record).split("\n")
    pattern = r"V\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ graphlift\] \[__guards\] [ab]"
    assert len(lines) == 2 and all(re.fullmatch(pattern, line) for line in lines), lines


@pytest.mark.parametrize(
    "environment, shown",
    [
        ({"GRAPHLIFT_LOGS": "+guards,graph"}, ["graph", "guards"]),
        ({"GRAPHLIFT_LOGS": "all"}, sorted(logs.ARTIFACTS)),
        ({"GRAPHLIFT_LOGS": "all,-bytecode"}, sorted(set(logs.ARTIFACTS) - {"bytecode"})),
        ({"TORCH_LOGS": "all"}, []),
        ({"TORCH_LOGS": "+dynamo,+guards"}, ["guards"]),
        ({"TORCH_LOGS": "graph_breaks,inductor"}, ["graph_breaks"]),
        ({"TORCH_LOGS": "graph_breaks", "GRAPHLIFT_LOGS": "guards"}, ["guards"]),
        ({}, []),
    ],
)
def test_environment(environment, shown):
    program = (
        f"import sys; sys.path.insert(0, {os.path.dirname(__file__)!r}); import build_folder, native_choice\n"
        "import graphlift\n"
        "from graphlift import logs\n"
        "for artifact in logs.ARTIFACTS: logs.emit(artifact, 'text')\n"
    )
    clean = {k: v for k, v in os.environ.items() if k not in ("GRAPHLIFT_LOGS", "TORCH_LOGS")}
    clean["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", program], env=clean | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sorted(re.findall(r"^V.*\[__(\w+)\] text$", done.stderr, re.M)) == shown, done.stderr


def test_help_is_printed(monkeypatch, capsys):
    monkeypatch.setenv("GRAPHLIFT_LOGS", "help")
    logs.start()
    printed = capsys.readouterr().err
    assert all(re.search(rf"^  {name} +\w", printed, re.M) for name in logs.ARTIFACTS), printed


def test_unknown_name_in_the_environment_is_a_warning(monkeypatch):
    monkeypatch.setenv("GRAPHLIFT_LOGS", "guards,nonsense")
    with pytest.warns(graphlift.GraphliftWarning, match="nonsense.*valid are.*graph_breaks"):
        logs.start()
