"""Logs: one Python logger `graphlift.<artifact>` per artifact, turned on by GRAPHLIFT_LOGS or set_logs().

The C++ side names the artifacts, decides what to say and asks first whether the artifact is on; this file reads the
environment and prints the lines in torch's format. TORCH_LOGS is read for the artifacts of the same name when
GRAPHLIFT_LOGS is not set.
"""

import logging
import os
import sys
import warnings

from . import _C
from .errors import GraphliftWarning

ARTIFACTS = _C.log_table()  # name -> what it shows

_logger = logging.getLogger("graphlift")


class _Format(logging.Formatter):
    """V1129 16:33:21.123456 PID graphlift] [__artifact] text: every line of a text gets the prefix."""

    def format(self, record):
        letter = {"DEBUG": "V", "INFO": "I", "WARNING": "W", "ERROR": "E", "CRITICAL": "C"}.get(record.levelname, "V")
        stamp = f"{self.formatTime(record, '%m%d %H:%M:%S')}.{int(record.created % 1 * 1e6):06d}"
        artifact = record.name.rpartition(".")[2]
        prefix = f"{letter}{stamp} {record.process} graphlift] [__{artifact}]"
        return "\n".join(f"{prefix} {line}" for line in record.getMessage().split("\n"))


class _Stderr(logging.StreamHandler):
    """Prints to the present sys.stderr, unless the program has set up logging itself."""

    def emit(self, record):
        if not logging.getLogger().handlers:
            self.setStream(sys.stderr)
            super().emit(record)


def set_logs(*names: str, **artifacts: bool) -> None:
    """Says which artifacts are logged: set_logs("graph_breaks", "+guards") or set_logs(graph_breaks=True).

    Each call sets all of them anew; set_logs() turns logs off; "all" stands for every artifact, "+" for more detail.
    """
    _, unknown = _split([*names, *artifacts])
    if unknown:
        raise ValueError(f"unknown log artifact {unknown[0]!r}; valid artifacts: {', '.join(ARTIFACTS)}")
    known, _ = _split([*names, *(name for name, on in artifacts.items() if on)])
    _turn_on(known)


def start() -> None:
    """Connects the C++ side with the loggers and turns on what the environment asks for."""
    _C.set_log_sink(emit)
    spec = os.environ.get("GRAPHLIFT_LOGS")
    if spec:
        words = spec.split(",")
    else:  # torch's other names, "all" too, are torch's business
        words = [word for word in os.environ.get("TORCH_LOGS", "").split(",") if word.strip("+- ") in ARTIFACTS]
    known, unknown = _split(words)
    if "help" in unknown:
        lines = [f"  {name:14}{text}" for name, text in ARTIFACTS.items()]
        head = "GRAPHLIFT_LOGS: names with commas between; +name for more detail, -name to leave one out, all"
        print("\n".join([head, *lines]), file=sys.stderr)
        unknown.remove("help")
    if unknown:
        warnings.warn(
            f"GRAPHLIFT_LOGS names unknown artifacts {', '.join(unknown)}; valid are {', '.join(ARTIFACTS)}",
            GraphliftWarning,
            stacklevel=2,
        )
    if known:
        _turn_on(known)


def emit(artifact: str, text: str) -> None:
    """What the C++ side calls with each message."""
    _logger.getChild(artifact).debug("%s", text.rstrip("\n"))


def _split(words):
    """Known artifacts, each with whether detail is wanted, and the words that name none."""
    known, unknown = {}, []
    for word in filter(None, (word.strip() for word in words)):
        name = word.lstrip("+-")
        for artifact in ARTIFACTS if name == "all" else [name]:
            if artifact not in ARTIFACTS:
                unknown.append(word)
            elif word.startswith("-"):
                known.pop(artifact, None)
            else:
                known[artifact] = known.get(artifact, False) or word.startswith("+")
    return known, unknown


def _turn_on(known):
    if known and not any(isinstance(handler, _Stderr) for handler in _logger.handlers):
        handler = _Stderr()
        handler.setFormatter(_Format())
        _logger.addHandler(handler)
    for name in ARTIFACTS:
        _logger.getChild(name).setLevel(logging.DEBUG if name in known else logging.NOTSET)
    _C.set_logs(",".join(["-all", *("+" * detail + name for name, detail in known.items())]))
