"""The size and the shape of files: ceilings, heads, names, and words that must not be there."""

import ast
import re

import pytest
from source_tree import CPP, ROOT, cpp_sources, cpp_tests, files, name, python_files

FILE_LINES = 500
FUNCTION_LINES = 70  # about 60 is the aim
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}


def test_files_stay_under_the_ceiling():
    every = cpp_sources() + cpp_tests() + python_files() + files("cmake", suffixes=(".cmake",))
    long = {name(path): count for path in every if (count := len(path.read_text().splitlines())) > FILE_LINES}
    assert not long, f"over {FILE_LINES} lines: {long}"


def cpp_functions(path):
    """(first line, length) of functions that are defined at the left margin, as clang-format leaves them.

    Rows of a table in a function do not count.
    """
    start, rows = None, 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if start is None and re.match(r"[A-Za-z_].*[({,]$", line):
            if re.match(r"(?!(namespace|struct|class|enum|union|extern|using|typedef)\b)[^={]*\(", line):
                start, rows = number, 0
        elif re.match(r"\s+(\{.*\},?|//.*)$", line):
            rows += 1
        elif line.startswith("}") and start is not None:
            yield start, number - start + 1 - rows
            start = None


def python_functions(path):
    """(first line, length) of all functions, without their docstrings and the functions in them."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = sum(
                other.end_lineno - other.lineno
                for other in ast.walk(node)
                if other is not node and isinstance(other, ast.FunctionDef | ast.ClassDef)
            )
            yield node.lineno, node.end_lineno - node.lineno + 1 - inner


def test_functions_stay_short():
    long = []
    for path in cpp_sources() + python_files():
        functions = cpp_functions(path) if path.suffix in CPP else python_functions(path)
        long += [f"{name(path)}:{line}: {length} lines" for line, length in functions if length > FUNCTION_LINES]
    assert not long, "\n".join(long)


def test_cpp_heads():
    wrong = []
    for path in cpp_sources() + cpp_tests():
        head = re.match(r"(//[^\n]*\n)+", path.read_text())
        if not head and path.suffix == ".cpp" and path.with_suffix(".h").exists():
            continue  # the header of the same name speaks for both
        if not head:
            wrong.append(f"{name(path)}: no head comment")
        elif path.suffix == ".h" and path in cpp_sources() and "Owns" not in head[0]:
            wrong.append(f"{name(path)}: the head does not say what the file owns")
    assert not wrong, "\n".join(wrong)


def test_static_locals_run_no_python():
    """Their guard is held while the GIL is given up: base/once.h is for values that Python code makes."""
    static = re.compile(r"^ +static (?!constexpr|constinit)[^;={(]*(?:= \*?\[\] \{.*?\}\(\);|[={(].*?;)", re.M | re.S)
    python = re.compile(
        r"PyImport_|PyObject_(Get|Call|Dir)|PyErr_New|PyType_From|WithGil|torch_(type|object)\(|own_method\("
    )
    wrong = []
    for path in cpp_sources():
        text = path.read_text()
        for match in static.finditer(text):
            if python.search(match[0]):
                wrong.append(f"{name(path)}:{text.count(chr(10), 0, match.start()) + 1}")
    assert not wrong, "\n".join(wrong)


def test_python_heads():
    wrong = [
        name(path)
        for path in python_files()
        if path.read_text().strip() and ast.get_docstring(ast.parse(path.read_text())) is None
    ]
    assert not wrong, f"no docstring: {wrong}"


def test_names():
    every = cpp_sources() + cpp_tests() + python_files()
    wrong = [name(path) for path in every if FORBIDDEN_NAMES & {path.stem, path.stem.split("_")[-1], *path.parts}]
    assert not wrong, f"a name that says nothing: {wrong}"


@pytest.mark.parametrize(
    "words, why",
    [
        (r"\bTO" + r"DO\b|\bFIX" + r"ME\b|\bX" + r"XX\b", "unfinished work belongs into an issue"),
        (r"/(root|home|work|Users)" + r"/\w", "a path of one machine"),
        (r"\bpypi" + r"\.org\b", "a package registry's host"),
    ],
)
def test_words(words, why):
    text_files = cpp_sources() + cpp_tests() + python_files()
    text_files += files("docs", "csrc", "bench", suffixes=(".md",)) + sorted(ROOT.glob("*.md"))
    text_files += [ROOT / "CMakeLists.txt", ROOT / "Makefile", ROOT / ".ci" / "run"]
    wrong = []
    for path in text_files:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(words, line):
                wrong.append(f"{name(path)}:{number}: {line.strip()[:80]}")
    assert not wrong, f"{why}:\n" + "\n".join(wrong)
