"""Runs kernels without a GPU: their text is compiled for this machine, against a driver and an NVRTC that are emulated.

A program, not a module of tests: a process that has loaded the emulated driver can use no real one. `emulated.py KIND
PART PARTS [NAME]` prints a line per wrong result and, last, how many were right. KIND: programs, operators or random; NAME: a part of their names.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
COMPILER = os.environ.get("CXX", "g++")


def build(folder):
    """The emulated libraries, loaded under their real names, so that a later dlopen() finds them."""
    for name, source in (("libcuda.so.1", "emulated_driver.cpp"), ("libnvrtc.so.13", "emulated_nvrtc.cpp")):
        path = Path(folder) / name
        if not path.exists():
            flags = ["-std=c++20", "-O1", "-shared", "-fPIC", f"-Wl,-soname,{name}"]
            subprocess.run([COMPILER, *flags, "-o", str(path), str(HERE / source), "-ldl"], check=True)
        ctypes.CDLL(str(path), mode=os.RTLD_GLOBAL | os.RTLD_NOW)
    os.environ["EMULATED_FOLDER"] = str(folder)
    checks = "-fsanitize=alignment,bounds,shift,integer-divide-by-zero -fno-sanitize-recover=all"
    os.environ["EMULATED_COMPILE"] = (
        f"{COMPILER} -std=c++17 -O0 -w -fwrapv -shared -fPIC {checks} -include {HERE / 'emulated_device.h'}"
    )
    os.environ["GRAPHLIFT_DISK_CACHE"] = "0"


def main(kind, part, parts, only=""):
    sys.path.insert(0, str(HERE.parent))
    __import__("build_folder")
    sys.path.insert(0, str(HERE.parent / "ops"))
    folder = os.environ.get("EMULATED_FOLDER") or tempfile.mkdtemp()
    build(folder)
    import kernel_corpus as corpus

    right = 0
    for name, check in list(getattr(corpus, kind)("cpu", "cuda_on_cpu"))[part::parts]:
        if only not in name:
            continue
        print(f"{name} ...", file=sys.stderr, flush=True)  # so that a crash names its program
        problem = check()
        if problem:
            print(f"## {name}: {problem}", flush=True)
        right += not problem
    print(f"{right} right", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
