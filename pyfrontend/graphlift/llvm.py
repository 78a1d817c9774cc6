"""LLVM in process, for the CPU backend: text of a module in, address of a function out, by way of llvmlite.

Object code is kept in the user's cache folder (`graphlift.cache`), by the content of what it was made from.
"""

import ctypes
import functools
import hashlib
import itertools
import pathlib

import llvmlite
import llvmlite.binding as binding
import torch

from . import cache

# Vector functions that kernels may call where libtorch_cpu has them: name, accuracy.
_VECTOR_FUNCTIONS = {
    **dict.fromkeys(
        (
            "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf pow"
            " atan2"
        ).split(),
        "_u10",
    ),
    "erfc": "_u15",
    "fmod": "",
}
# Vectors are written out, loops are short and have their condition at the end: LLVM's own pipelines take several times
# as long and gain nothing that can be measured.
_PASSES = ("sroa", "instruction_combine")
_keep = []  # libraries own the code they were linked to
_serial = itertools.count()  # two threads may link one kernel at once


@functools.cache
def _torch_library() -> ctypes.CDLL | None:
    for path in pathlib.Path(torch.__file__).parent.glob("lib/libtorch_cpu.*"):
        return ctypes.CDLL(str(path))
    return None


@functools.cache
def _machine() -> binding.TargetMachine:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple().create_target_machine(
        opt=3, cpu=binding.get_host_cpu_name(), features=_features()
    )


@functools.cache
def _features() -> str:
    return binding.get_host_cpu_features().flatten()


@functools.cache
def _linker():
    return binding.create_lljit_compiler(_machine())


def _vector_bytes() -> int:
    features = set(_features().split(","))
    if "+avx512f" in features and "+avx512bw" in features:
        return 64
    return 32 if "+avx2" in features else 16


def _address(name: str) -> int:
    return ctypes.cast(getattr(_torch_library(), name), ctypes.c_void_p).value


@functools.cache
def describe_target() -> tuple[int, tuple[str, ...]]:
    """Bytes of a native vector register, and the vector functions that kernels may call."""
    width, found = _vector_bytes(), []
    library = _torch_library()
    for name, accuracy in _VECTOR_FUNCTIONS.items():
        for kind, size in (("f", 4), ("d", 8)):
            function = f"Sleef_{name}{kind}{width // size}{accuracy}"
            if library is not None and hasattr(library, function):
                found.append(function)
    return width, tuple(found)


@functools.cache
def _fingerprint() -> bytes:
    parts = (*_PASSES, llvmlite.__version__, str(binding.llvm_version_info), binding.get_host_cpu_name(), _features())
    return "\n".join(parts).encode()


def _object_code(text: str) -> bytes:
    module = binding.parse_assembly(text)
    passes = binding.create_new_module_pass_manager()
    for name in _PASSES:
        getattr(passes, f"add_{name}_pass")()
    passes.run(module, binding.create_pass_builder(_machine(), binding.create_pipeline_tuning_options()))
    return _machine().emit_object(module)


def compile(name: str, text: str) -> int:
    """The address of function `name` of a module. RuntimeError: LLVM's words on text that is wrong."""
    key = hashlib.sha256(_fingerprint() + text.encode()).hexdigest()
    code = cache.read("cpu", key)
    if code is None:
        code = _object_code(text)
        cache.write("cpu", key, code)
    library = binding.JITLibraryBuilder().add_object_img(code).export_symbol(name).add_current_process()
    for function in describe_target()[1]:
        if f"@{function}(" in text:
            library.import_symbol(function, _address(function))
    linked = library.link(_linker(), f"{key}{next(_serial)}")
    _keep.append(linked)
    return linked[name]
