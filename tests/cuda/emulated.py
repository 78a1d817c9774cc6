"""Runs kernels without a GPU: their text is compiled for this machine, against a driver and an NVRTC that are emulated.

A program, not a module of tests: a process that has loaded the emulated driver can use no real one. `emulated.py KIND
PART PARTS [NAME]` prints a line per wrong result and, last, how many were right. KIND: programs, tiled, operators,
products or random; NAME: a part of their names. `emulated.py told NAME...` prints what the emulated cuBLASLt was told,
`emulated.py measured` how much was measured, `emulated.py draws` how many draws are as torch's model has them.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
COMPILER = os.environ.get("CXX", "g++")
LIBRARIES = {
    "libcuda.so.1": "emulated_driver.cpp",
    "libnvrtc.so.13": "emulated_nvrtc.cpp",
    "libcublasLt.so.13": "emulated_cublaslt.cpp",
}


def build(folder):
    """The emulated libraries, loaded under their real names, so that a later dlopen() finds them."""
    for name, source in LIBRARIES.items():
        if name == os.environ.get("EMULATED_WITHOUT"):
            continue
        path = Path(folder) / name
        if not path.exists() or path.stat().st_mtime < (HERE / source).stat().st_mtime:
            flags = ["-std=c++20", "-O1", "-shared", "-fPIC", f"-Wl,-soname,{name}"]
            subprocess.run([COMPILER, *flags, "-o", str(path), str(HERE / source), "-ldl"], check=True)
        ctypes.CDLL(str(path), mode=os.RTLD_GLOBAL | os.RTLD_NOW)
    os.environ["EMULATED_FOLDER"] = str(folder)
    checks = "-fsanitize=alignment,bounds,shift,integer-divide-by-zero -fno-sanitize-recover=all"
    command = [COMPILER, *"-std=c++17 -O0 -w -fwrapv -fPIC".split(), *checks.split()]
    header = Path(folder) / "emulated_device.h"
    text = (HERE / header.name).read_text()
    if not header.exists() or header.read_text() != text:
        header.write_text(text)
        # Precompiled, as each kernel includes it.
        subprocess.run([*command, "-x", "c++-header", "-o", f"{header}.gch", str(header)], check=True)
    os.environ["EMULATED_COMPILE"] = f"{' '.join(command)} -shared -include {header}"
    os.environ["GRAPHLIFT_DISK_CACHE"] = "0"


def begin():
    """The corpus, with everything emulated; and the folder of the libraries."""
    sys.path.insert(0, str(HERE.parent))
    __import__("build_folder")
    sys.path.insert(0, str(HERE.parent / "ops"))
    folder = os.environ.get("EMULATED_FOLDER") or tempfile.mkdtemp()
    build(folder)
    import kernel_corpus

    return kernel_corpus, folder


def tell(*names):
    """What the emulated library multiplied for each of these programs."""
    corpus, folder = begin()
    log = ctypes.CDLL(str(Path(folder) / "libcublasLt.so.13")).emulated_cublaslt_log
    log.restype = ctypes.c_char_p
    for name, check in corpus.products("cpu", "cuda_on_cpu"):
        if name not in names:
            continue
        log()
        problem = check()
        assert problem is None, problem
        print(name, log().decode(), sep="\n", flush=True)


def measure():
    """How much is measured for one program after another, each of which is compiled twice."""
    corpus, _ = begin()
    import torch
    from product_programs import PRODUCTS

    def rows(device):
        return [torch.linspace(-1, 1, 2**18, device=device).view(256, 1024).requires_grad_()]

    programs = {one.name: one for one in PRODUCTS}
    chosen = [("rows", lambda x: [x.softmax(-1)], rows)]
    for name in ("block float16", "linear float32", "relu float64", "empty (8, 0, 16) float32"):
        chosen.append((name, programs[name].function, programs[name].make))
    for name, function, make in chosen:
        counts = []
        for _ in range(2):
            before = corpus.runtime.measurements()
            problem = corpus.check(function, make, "cpu", "cuda_on_cpu", mode="max-autotune-no-cudagraphs")
            assert problem is None, problem
            counts.append(corpus.runtime.measurements() - before)
        print(name, *counts, sep=": ", flush=True)


def draw():
    """Draws inside of kernels beside torch's way to draw, element by element; how many were right."""
    corpus, _ = begin()
    import draw_model
    import torch

    runtime, processors = corpus.runtime, 4

    def expected(x, keep, seed, offset, vector):
        drawn = torch.tensor(draw_model.draws(seed, offset, x.numel(), vector, processors), dtype=torch.float32)
        mask = (drawn < keep).view(x.shape)
        return (x.float() * mask * (1 / torch.tensor(keep, dtype=torch.float32))).to(x.dtype), mask

    right = 0
    for sizes, vector, dtype, recorded in [
        ((1,), 4, torch.float32, False),
        ((1000,), 4, torch.float32, True),
        ((25, 40), 8, torch.bfloat16, False),
        ((51, 33), 4, torch.float32, False),
        ((57, 606), 2, torch.float16, False),
        ((5, 41, 200), 4, torch.float32, True),
        ((41, 1000), 8, torch.bfloat16, False),
    ]:
        seed, offset, keep = 0x1234567890ABCDEF, (7 << 34) + 8, 1 - 0.25
        runtime.set_draw_state(seed, offset, recorded, vector)
        made = torch.randn(sizes, generator=torch.Generator().manual_seed(5)).to(dtype)

        def function(x):
            first, mask = torch.native_dropout(x * 2, 0.25, True)
            second, other = torch.native_dropout(first.sum(-1, keepdim=True) + x * 4, 0.25, True)
            return [first, mask, second, other]

        before = runtime.kernels()
        runner = runtime.record(function, [made], [], "cuda_on_cpu")
        assert runtime.kernels() > before
        first, mask, second, other = runner([made], [])
        step = draw_model.increment(made.numel(), processors)
        y, m = expected(made * 2, keep, seed, offset, vector)
        assert torch.equal(mask, m), (sizes, vector)
        assert torch.equal(first, y), (sizes, vector)
        # Of a recording the second draw's place is told by the recorder; here both begin with the same numbers.
        _, m = expected(made, keep, seed, offset + (0 if recorded else step), vector)
        assert torch.equal(other, m), (sizes, vector)
        assert not (second[~other] != 0).any(), (sizes, vector)
        assert runtime.draw_offset() == offset + (0 if recorded else 2 * step)
        right += 1
    before = runtime.kernels()
    runtime.record(lambda x: [torch.native_dropout(x * 2 + 1, 0.5, True)[0] * 3], [made], [], "cuda_on_cpu")
    assert runtime.kernels() == before + 1  # with what is cheap in front of the draw, and behind it
    print(f"{right} right")


def rounded():
    """How far a transformer's feed-forward part is off in 16 bits, eager's distance and ours, for each result."""
    corpus, _ = begin()
    import torch
    from product_programs import block

    def leaves(dtype):
        torch.manual_seed(3)
        sizes = (64, 96), (384, 96), (384,), (96, 384), (96,)
        made = [torch.randn(size) / (10 if len(size) == 2 and size[0] > 64 else 1) for size in sizes]
        return [tensor.to(torch.bfloat16).to(dtype).requires_grad_() for tensor in made]

    def results(call, dtype=torch.bfloat16):
        given = leaves(dtype)
        y = call(*given)[0]
        return [t.double() for t in (y, *torch.autograd.grad(y.double().square().mean(), given))]

    ours = corpus.runtime.record(block, leaves(torch.bfloat16), [], "cuda_on_cpu")
    exact = results(block, torch.float64)
    for truth, eager, got in zip(exact, results(block), results(lambda *t: ours(list(t), [])), strict=True):
        print(*((t - truth).square().mean().sqrt().item() for t in (eager, got)))
    print(corpus.runtime.library_products())


def main(kind, part, parts, only=""):
    corpus, _ = begin()
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
    if sys.argv[1] == "told":
        tell(*sys.argv[2:])
    elif sys.argv[1] == "rounded":
        rounded()
    elif sys.argv[1] == "draws":
        draw()
    elif sys.argv[1] == "measured":
        measure()
    else:
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
