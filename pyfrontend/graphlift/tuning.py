"""What `mode="max-autotune"` keeps on disk, and how it shows its progress.

A choice is kept beside compiled kernels (`graphlift.cache`), by what was measured, where, and with which libraries.
"""

import functools
import hashlib
import logging
import sys

import torch

from . import cache

_bar = None


@functools.cache
def _fingerprint() -> str:
    import llvmlite.binding as binding

    return "\n".join((torch.__version__, torch.__config__.show(), binding.get_host_cpu_name(), "1"))


def _key(text: str) -> str:
    return hashlib.sha256(f"{_fingerprint()}\n{text}".encode()).hexdigest()


def read(text: str) -> str | None:
    """The name of the implementation that won; None: unknown, or what is kept is damaged."""
    kept = cache.read("tuned", _key(text))
    return None if kept is None else kept.decode("ascii", "replace")


def write(text: str, name: str) -> None:
    """Keeps the name of an implementation."""
    cache.write("tuned", _key(text), name.encode())


def begin(operations: int) -> None:
    """A bar where somebody sees it: on a terminal, or with the log of performance hints on."""
    global _bar
    if not sys.stderr.isatty() and not logging.getLogger("graphlift.perf_hints").isEnabledFor(logging.DEBUG):
        return
    try:
        from tqdm import tqdm
    except ImportError:  # progress is nothing that a program needs
        return
    _bar = tqdm(total=operations, desc="graphlift: measuring", leave=False, file=sys.stderr)


def step() -> None:
    """One more operation is done."""
    if _bar is not None:
        _bar.update()


def end() -> None:
    """All are done, or compiling failed."""
    global _bar
    if _bar is not None:
        _bar.close()
        _bar = None
