"""Where CUDA's run-time compiler may lie, and compiled kernels on disk, for the CUDA backend.

Must not import anything that a program without a GPU has no use for.
"""

import hashlib
import pathlib

import torch

from . import cache

# Folders beside torch's own, as the wheels of CUDA 13 and 12 have it.
_FOLDERS = ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib")
_NAMES = ("libnvrtc.so.13", "libnvrtc.so.12")


def candidates() -> list[str]:
    """Paths beside torch, the most fitting first."""
    packages = pathlib.Path(torch.__file__).parent.parent
    major = (torch.version.cuda or "").partition(".")[0]
    names = sorted(_NAMES, key=lambda name: not name.endswith(f".{major}"))
    beside = [packages / folder / name for name in names for folder in _FOLDERS]
    return [str(path) for path in beside if path.exists()]


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read(text: str) -> bytes | None:
    """Code that was kept for a text."""
    return cache.read("cuda", _key(text))


def write(text: str, code: bytes) -> None:
    """Keeps the code of a text."""
    cache.write("cuda", _key(text), code)
