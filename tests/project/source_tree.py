"""The repository's files, for the tests of its rules. Reads what is on disk; asks nothing of git."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CPP = (".cpp", ".h", ".def")


def files(*folders, suffixes):
    """All files below the folders with one of the suffixes; build results left out."""
    found = []
    for folder in folders:
        found += [path for path in (ROOT / folder).rglob("*") if path.suffix in suffixes and path.is_file()]
    return sorted(path for path in found if not any(part in ("build", "__pycache__") for part in path.parts))


def cpp_sources():
    return files("csrc", "backends", suffixes=CPP)


def cpp_tests():
    return files("tests/cpp", suffixes=CPP)


def python_files():
    top = [ROOT / "setup.py"]
    return top + files("cmake", "pyfrontend", "tests", "examples", "bench", suffixes=(".py",))


def name(path):
    return path.relative_to(ROOT).as_posix()


def includes(path):
    """(text, quoted) of each include line."""
    pattern = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
    return [(match[2], match[1] == '"') for match in pattern.finditer(path.read_text())]
