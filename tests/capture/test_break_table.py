"""Every row of csrc/capture/breaks.def is met by a program: its reason, place and hint are told, and eager is met."""

import inspect
import re

import pytest
import torch
from broken import PROGRAMS
from judging import run_once, same

import graphlift
from graphlift import _C

ROWS = {row: (sentence, hint) for row, sentence, hint in _C.breaks()}
# What every round of a loop meets is told in detail only, and not counted. A container is filled behind another break;
# a generator is another one in a later round. Where torch.cond reads its predicate a graph ends by design.
SEAMS = ("loop_boundary", "inner_generator", "filling", "control_flow")
NEVER_FIRST = ("filling", "generator_argument", "control_flow")


def marked_line(program):
    lines, first = inspect.getsourcelines(program)
    return next(first + i for i, line in enumerate(lines) if line.rstrip().endswith("# break"))


def pattern(sentence):
    return re.escape(sentence).replace(r"\{\}", ".*")


def test_every_row_has_a_program():
    assert set(PROGRAMS) == set(ROWS)


def check_message(row, message):
    program, _ = PROGRAMS[row]
    sentence, hint = ROWS[row]
    assert re.search(pattern(sentence), message), message
    assert "{}" not in message
    assert not hint or f"Hint: {hint}" in message
    stack = re.findall(r'File "([^"]+)", line (\d+), in (\w+)', message)
    place = (inspect.getsourcefile(program), str(marked_line(program)), program.__name__)
    assert place in stack, message


@pytest.mark.parametrize("row", [row for row in ROWS if row not in NEVER_FIRST])
def test_fullgraph_refuses_it(row):
    program, make = PROGRAMS[row]
    with pytest.raises(graphlift.GraphBreakError) as caught:
        graphlift.compile(program, fullgraph=True)(*make())
    check_message(row, str(caught.value))


@pytest.mark.parametrize("row", ROWS)
def test_the_log_names_reason_place_and_hint(row, caplog):
    program, make = PROGRAMS[row]
    graphlift.set_logs("+graph_breaks")
    try:
        outcome = run_once(graphlift.compile(program), make)
    finally:
        graphlift.set_logs()
    assert ("error" in outcome) == (row == "raises"), outcome
    messages = [record.getMessage() for record in caplog.records if record.name == "graphlift.graph_breaks"]
    named = [message for message in messages if re.search(pattern(ROWS[row][0]), message)]
    assert named, messages
    check_message(row, named[0])
    assert named[0].startswith("Seam at " if row in SEAMS else "Graph break at ")


@pytest.mark.parametrize("row", ROWS)
def test_the_code_around_it_is_compiled_and_equals_eager(row):
    program, make = PROGRAMS[row]
    compiled = graphlift.compile(program)
    for _ in range(3):
        got, want = run_once(compiled, make), run_once(program, make)
        assert got.get("error") == want.get("error")
        same(got.get("result"), want.get("result"))
    counts = graphlift.counters()
    assert counts["graphs"] >= 1 and counts["hits"] >= 1 and counts["internal_errors"] == 0, counts
    named = [reason for reason in counts["graph_break"] if re.fullmatch(pattern(ROWS[row][0]) + r"( \(.*\))?", reason)]
    assert named or row in SEAMS, counts["graph_break"]
    assert not torch.compiler.is_compiling()
