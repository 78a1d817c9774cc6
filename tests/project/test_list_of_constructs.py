"""tests/capture/README.md names tests that are there."""

import re

from source_tree import ROOT

FOLDER = ROOT / "tests" / "capture"


def test_each_test_that_is_named_is_there():
    rows = re.findall(r"^\| .+ \| `([^`:]+)(?:::(\w+))?` \| .+ \|$", (FOLDER / "README.md").read_text(), re.MULTILINE)
    missing = []
    for file, test in rows:
        path = FOLDER / file
        pattern = rf"^def {test}\(" if test else r"^def test_"
        if not path.exists() or not re.search(pattern, path.read_text(), re.MULTILINE):
            missing.append(f"{file}::{test}")
    assert len(rows) > 100 and not missing, missing


def test_each_row_names_a_test():
    rows = [line for line in (FOLDER / "README.md").read_text().splitlines() if line.startswith("| ")]
    wrong = [row for row in rows if "| Construct |" not in row and not re.search(r" \| `[^`]+` \| ", row)]
    assert not wrong, wrong
