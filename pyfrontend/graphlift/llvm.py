"""LLVM in process, for the CPU backend: texts of modules in, addresses of functions out, by way of llvmlite.

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
# Of code generation, what rewrites the places of loops: a fifth of the time for nothing that can be measured either,
# since kernels compute them outside of their inner loops. The switch is one for all users of LLVM in the process.
_WITHOUT = "-disable-lsr"
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


@functools.cache
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
    parts = (
        *_PASSES,
        _WITHOUT,
        llvmlite.__version__,
        str(binding.llvm_version_info),
        binding.get_host_cpu_name(),
        _features(),
    )
    return "\n".join(parts).encode()


def _object_code(text: str) -> bytes:
    module = binding.parse_assembly(text)
    passes = binding.create_new_module_pass_manager()
    for name in _PASSES:
        getattr(passes, f"add_{name}_pass")()
    passes.run(module, binding.create_pass_builder(_machine(), binding.create_pipeline_tuning_options()))
    binding.set_option("", f"{_WITHOUT}=true")
    try:
        return _machine().emit_object(module)
    finally:
        binding.set_option("", f"{_WITHOUT}=false")


def _joined(texts: list[str]) -> str:
    """One module of many, in which functions have different names: what several declare stands there once."""
    shared: dict[str, None] = {}
    functions = []
    for line in "\n".join(texts).splitlines():
        if line.startswith(("declare ", "attributes ")):
            shared[line] = None
        else:
            functions.append(line)
    return "\n".join([*shared, *functions])


def _key(text: str) -> str:
    return hashlib.sha256(_fingerprint() + text.encode()).hexdigest()


def _together(keys: list[str]) -> str:
    """The key of a module of these kernels."""
    return keys[0] if len(keys) == 1 else _key("".join(keys))


def _module_of(key: str) -> str:
    """The key of the module that a kernel was compiled in."""
    place = cache.read("cpu", f"{key}.in")
    return key if place is None else place.decode()


def _kept(keys: list[str]) -> list[tuple[str, bytes, list[int]]]:
    """Modules on disk: key, object code, and which of the kernels are taken from it."""
    whole = _together(keys)
    code = cache.read("cpu", whole)
    if code is not None:
        return [(whole, code, list(range(len(keys))))]
    members: dict[str, list[int]] = {}
    for i, key in enumerate(keys):
        members.setdefault(_module_of(key), []).append(i)
    found = ((module, cache.read("cpu", module), taken) for module, taken in members.items())
    return [(module, code, taken) for module, code, taken in found if code is not None]


def _compiled(keys: list[str], texts: list[str]) -> tuple[str, bytes]:
    """The key and the object code of a module of all these kernels, which is kept on disk."""
    whole = _together(keys)
    code = _object_code(_joined(texts))
    cache.write("cpu", whole, code)
    if len(keys) > 1:
        for key in keys:
            cache.write("cpu", f"{key}.in", whole.encode())
    return whole, code


def _link(key: str, code: bytes, names: list[str]) -> list[int]:
    library = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name in names:
        library.export_symbol(name)
    for function in describe_target()[1]:  # other kernels of the module may call any of them
        library.import_symbol(function, _address(function))
    linked = library.link(_linker(), f"{key}{next(_serial)}")
    _keep.append(linked)
    return [linked[name] for name in names]


def compile(names: list[str], texts: list[str]) -> list[int]:
    """The addresses of kernels: function `names[i]` of the module `texts[i]`; no two names are equal.

    What is not on disk is compiled as one module, since each costs LLVM some milliseconds besides its functions.
    RuntimeError: LLVM's words on text that is wrong.
    """
    keys = [_key(text) for text in texts]
    modules = _kept(keys)
    known = {i for _, _, taken in modules for i in taken}
    missing = [i for i in range(len(keys)) if i not in known]
    if missing:
        modules.append((*_compiled([keys[i] for i in missing], [texts[i] for i in missing]), missing))
    addresses = [0] * len(names)
    for module, code, taken in modules:
        for i, address in zip(taken, _link(module, code, [names[i] for i in taken]), strict=True):
            addresses[i] = address
    return addresses
