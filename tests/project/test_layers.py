"""Layers: which folder may include which, held by the include lines. The table is docs/design.md's."""

import functools

import pytest
from source_tree import ROOT, cpp_sources, includes, name

LOWER = "base cpython eval ir ops guards autograd passes backend"
# folder -> folders that it may include, besides itself
LAYERS = {
    "csrc/base": "",
    "csrc/cpython": "base",
    "csrc/eval": "base cpython",
    "csrc/ir": "base",
    "csrc/ops": "base ir",
    "csrc/guards": "base ir cpython",
    "csrc/autograd": "base ir ops",
    "csrc/passes": "base ir ops",
    "csrc/backend": "base ir ops",
    "csrc/torch": "base ir ops guards autograd passes backend",
    "csrc/capture": "base cpython eval ir guards torch",
    "csrc/engine": LOWER + " torch capture backends/reference",
    "csrc/python": LOWER
    + " torch capture engine backends/reference backends/codegen backends/cpu backends/cuda backends/native backends/foreign",
    "backends/reference": "base ir ops backend torch",
    "backends/native": "base ir backend",
    "backends/codegen": "base ir ops",
    "backends/cuda": "base ir ops backend torch backends/codegen backends/cpu backends/reference",
    "backends/cpu": "base ir ops backend torch backends/codegen backends/reference",
    "backends/foreign": "base cpython ir backend torch",
}
# Folders whose files may include torch's own headers, directly or through another header.
MAY_SEE_TORCH = ("csrc/torch", "backends/")
TEST_MODULES = "_module"  # csrc/python/<name>_module*.cpp: modules for tests, which may as well
TORCH_HEADERS = ("ATen/", "c10/", "torch/csrc/", "torch/library.h", "torch/extension.h", "torch/torch.h", "caffe2/")


def layer_of(path):
    return max((layer for layer in LAYERS if name(path).startswith(layer + "/")), key=len, default=None)


def own_header(path, text):
    """The file of ours that an include line names, or None."""
    for base in (ROOT / "csrc", ROOT, path.parent):
        if (base / text).is_file():
            return (base / text).resolve()
    return None


def is_torch_header(path, text):
    return text.startswith(TORCH_HEADERS) and own_header(path, text) is None


@functools.cache
def sees_torch(path):
    """An include chain from the file to a header of torch, or None."""
    for text, _ in includes(path):
        if is_torch_header(path, text):
            return [text]
        header = own_header(path, text)
        chain = sees_torch(header) if header else None
        if chain:
            return [name(header), *chain]
    return None


def test_every_source_is_in_a_layer():
    homeless = [name(path) for path in cpp_sources() if layer_of(path) is None]
    assert not homeless, f"not in tests/project/test_layers.py's table: {homeless}"


@pytest.mark.parametrize("layer", LAYERS)
def test_includes(layer):
    allowed = {entry if "/" in entry else f"csrc/{entry}" for entry in LAYERS[layer].split()} | {layer}
    wrong = []
    for path in cpp_sources():
        if layer_of(path) != layer:
            continue
        for text, quoted in includes(path):
            header = own_header(path, text)
            if header and layer_of(header) not in allowed:
                wrong.append(f"{name(path)} includes {text}")
            elif quoted and not header and not text.startswith("internal/"):  # CPython's own
                wrong.append(f"{name(path)} includes {text}, which does not exist")
            elif quoted and header and not (ROOT / "csrc" / text).is_file() and not (ROOT / text).is_file():
                wrong.append(f"{name(path)} includes {text}: write it relative to csrc/")
    assert not wrong, "\n".join(wrong)


def test_only_torch_and_backends_see_torchs_headers():
    wrong = []
    for path in cpp_sources():
        allowed = name(path).startswith(MAY_SEE_TORCH)
        allowed |= layer_of(path) == "csrc/python" and TEST_MODULES in path.stem
        if not allowed and sees_torch(path):
            wrong.append(f"{name(path)} sees {' -> '.join(sees_torch(path))}")
    assert not wrong, "\n".join(wrong)


def test_only_the_bindings_include_pybind11():
    wrong = [
        name(path)
        for path in cpp_sources()
        if layer_of(path) != "csrc/python" and any(text.startswith("pybind11/") for text, _ in includes(path))
    ]
    assert not wrong


def test_only_cpython_knows_versions_and_internals():
    wrong = []
    for path in cpp_sources():
        if layer_of(path) == "csrc/cpython":
            continue
        if "PY_VERSION_HEX" in path.read_text() or "PY_MINOR_VERSION" in path.read_text():
            wrong.append(f"{name(path)} mentions the version of Python")
        wrong += [f"{name(path)} includes {text}" for text, _ in includes(path) if text.startswith("internal/")]
    assert not wrong, "\n".join(wrong)
