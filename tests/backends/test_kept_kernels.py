"""Compiled kernels on disk: rebuilt when damaged, written by many processes, refused where others could write."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import graphlift
from graphlift import _C, cache, llvm

pytestmark = pytest.mark.skipif(_C.kernel_refusal() != "", reason=f"no kernels here: {_C.kernel_refusal()}")

PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import build_folder
import torch, graphlift
from graphlift import llvm
compiled, compile_text = [], llvm._object_code
llvm._object_code = lambda text: compiled.append(text) or compile_text(text)
x = torch.arange(6.0)
assert torch.allclose(graphlift.compile(lambda x: torch.tanh(x) * 3 + 1)(x), torch.tanh(x) * 3 + 1)
assert graphlift.counters()["kernels"] == 1
print(len(compiled))
"""


def start(folder):
    environment = dict(os.environ, GRAPHLIFT_CACHE_DIR=str(folder), GRAPHLIFT_STRICT="1")
    tests = str(Path(__file__).parent.parent)
    return subprocess.Popen(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", PROGRAM, tests],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def compiled_by(process):
    """How many kernels a process had to compile."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return int(out), err


def test_a_second_process_compiles_nothing_until_the_code_is_damaged(tmp_path):
    assert compiled_by(start(tmp_path))[0] == 1
    assert compiled_by(start(tmp_path))[0] == 0
    (kept,) = (tmp_path / "cpu").iterdir()
    whole = kept.read_bytes()
    for damaged in (whole[:-1], whole[:20], b"", whole[:-1] + bytes([whole[-1] ^ 1])):
        kept.write_bytes(damaged)
        assert compiled_by(start(tmp_path))[0] == 1
        assert kept.read_bytes() == whole
    assert (tmp_path / "cpu").stat().st_mode & 0o777 == 0o700


def test_kernels_are_compiled_as_one_module_and_found_in_it(tmp_path, monkeypatch):
    texts, compile_text = [], llvm._object_code
    monkeypatch.setattr(llvm, "_object_code", lambda text: texts.append(text) or compile_text(text))
    monkeypatch.setenv("GRAPHLIFT_CACHE_DIR", str(tmp_path))
    cache._folder.cache_clear()

    def function(a, b):
        return torch.tanh(a) * 0.375 + 1, (b * 1.625).softmax(-1)

    def check(function, *inputs):
        for got, expected in zip(graphlift.compile(function, dynamic=False)(*inputs), function(*inputs), strict=True):
            assert torch.allclose(got, expected)

    check(function, torch.rand(40), torch.rand(8, 40))
    (module,) = texts
    names = [line.split("@")[1].split("(")[0] for line in module.splitlines() if line.startswith("define void")]
    assert len(names) == 2

    # Each by itself, as another process would: from the module on disk, until that is gone.
    parts = [llvm.cache.read("cpu", path.name) for path in (tmp_path / "cpu").iterdir() if path.name.endswith(".in")]
    assert len(parts) == 2 and parts[0] == parts[1]
    assert llvm._kept(["unknown"]) == []
    keys = [path.name.removesuffix(".in") for path in (tmp_path / "cpu").iterdir() if path.name.endswith(".in")]
    for key in keys:
        ((place, code, taken),) = llvm._kept([key])
        assert place == parts[0].decode() and taken == [0] and code
    (tmp_path / "cpu" / parts[0].decode()).write_bytes(b"damaged")
    assert [llvm._kept([key]) for key in keys] == [[], []]
    cache._folder.cache_clear()


def test_two_processes_write_at_once(tmp_path):
    both = [start(tmp_path), start(tmp_path)]
    assert all(compiled_by(process)[0] <= 1 for process in both)
    assert [file.name.startswith("tmp") for file in (tmp_path / "cpu").iterdir()] == [False]


def test_a_folder_that_others_can_write_to_is_refused(tmp_path):
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu").chmod(0o777)
    count, err = compiled_by(start(tmp_path))
    assert count == 1 and "others can write to it" in err
    assert not list((tmp_path / "cpu").iterdir())


def test_the_disk_cache_can_be_turned_off(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHLIFT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("GRAPHLIFT_DISK_CACHE", "0")
    cache._folder.cache_clear()
    x, before = torch.rand(11), graphlift.counters()["kernels"]
    assert torch.allclose(graphlift.compile(lambda x: torch.exp(x) - 17)(x), torch.exp(x) - 17)
    assert graphlift.counters()["kernels"] == before + 1
    assert not list(tmp_path.iterdir())
    cache._folder.cache_clear()
