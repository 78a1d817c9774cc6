"""Compiled code on disk, by content: the user's own folder, safe for many processes, never believed when damaged.

`GRAPHLIFT_CACHE_DIR` names another folder; `GRAPHLIFT_DISK_CACHE=0` turns it off.
"""

import functools
import hashlib
import os
import pathlib
import stat
import tempfile
import warnings

import platformdirs

_DIGEST = hashlib.sha256
_DIGEST_BYTES = 32


def _refusal(folder: pathlib.Path) -> str:
    """Why a folder can't be trusted: others could put code there that this process would run."""
    found = folder.stat()
    if hasattr(os, "getuid") and found.st_uid not in (os.getuid(), 0):
        return "it belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "others can write to it"
    return ""


@functools.cache
def _folder(name: str) -> pathlib.Path | None:
    if os.environ.get("GRAPHLIFT_DISK_CACHE", "1") == "0":
        return None
    root = os.environ.get("GRAPHLIFT_CACHE_DIR") or platformdirs.user_cache_dir("graphlift")
    folder = pathlib.Path(root) / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        refusal = _refusal(folder) or _refusal(folder.parent)
    except OSError as error:
        refusal = str(error)
    if refusal:
        warnings.warn(f"graphlift keeps no compiled code in {folder}: {refusal}", stacklevel=2)
        return None
    return folder


def read(name: str, key: str) -> bytes | None:
    """What was written under a key; None when there is nothing, or what is there is damaged."""
    folder = _folder(name)
    if folder is None:
        return None
    try:
        content = (folder / key).read_bytes()
    except OSError:
        return None
    digest, data = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return data if _DIGEST(key.encode() + data).digest() == digest else None


def write(name: str, key: str, data: bytes) -> None:
    """Keeps data under a key. Readers see the whole of it or nothing; a full disk or a read-only one costs nothing."""
    folder = _folder(name)
    if folder is None:
        return
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            temporary = file.name
            file.write(_DIGEST(key.encode() + data).digest() + data)
        os.replace(temporary, folder / key)
    except OSError:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
