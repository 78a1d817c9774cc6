"""Fused kernels on CPU beside eager and the machine's copy bandwidth, and what compiling a kernel costs.

    python bench/cpu_kernels.py [--mib 256]

Sizes are beyond the caches. "of copy": bytes that the kernel must move, per second, as a share of what copying a tensor
of the same size moves; the kernel, eager and the copy run in turns, and each one's least time counts. The process keeps
the memory that it frees: results in fresh pages would be timings of the kernel's page faults, in eager above all.
"""

import argparse
import ctypes
import statistics
import time
from functools import partial

import torch
import torch.nn.functional as F

import graphlift
from graphlift import llvm

# mallopt's numbers of parameters, from glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4


def keep_freed_memory():
    """What is freed is not given back to the system, where the C library can be told so."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def least(functions, runs=15):
    """Seconds of each function, the least of runs in turns."""
    for function in functions:
        function()
    times = [float("inf")] * len(functions)
    for _ in range(runs):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            times[i] = min(times[i], time.perf_counter() - start)
    return times


def watch_compilation():
    """Seconds of each compilation of a kernel from now on."""
    seconds, compile_text = [], llvm._object_code

    def timed(text):
        start = time.perf_counter()
        code = compile_text(text)
        seconds.append(time.perf_counter() - start)
        return code

    llvm._object_code = timed
    return seconds


def rows(elements):
    """Name, function, inputs, tensors of the input's size that have to be moved."""
    columns = 1024
    x, y = torch.randn(elements // columns, columns), torch.randn(elements // columns, columns)
    w = torch.randn(columns)
    yield "chain of two inputs", lambda a, b: torch.tanh(a * b + 1) * torch.sigmoid(a), (x, y), 3
    yield "gelu", lambda a: F.gelu(a), (x,), 2
    yield "add and relu", lambda a, b: torch.relu(a + b), (x, y), 3
    yield "softmax", lambda a: a.softmax(-1), (x,), 2
    yield "layer norm", lambda a, w: F.layer_norm(a, (columns,), w, w), (x, w), 2
    yield "rms norm", lambda a, w: a * torch.rsqrt(a.pow(2).mean(-1, keepdim=True) + 1e-6) * w, (x, w), 2
    yield "column sum", lambda a: a.sum(0), (x,), 1
    yield "row sum", lambda a: a.sum(1), (x,), 1
    yield from gradients(x, y, w)
    images = x.view(-1, 64, 32, 32)
    statistics = [torch.zeros(64), torch.ones(64)]
    # Its input is read twice: what is normalized waits for the moments.
    for layout, name in ((torch.contiguous_format, "batch norm"), (torch.channels_last, "batch norm, channels last")):
        inputs = images.contiguous(memory_format=layout), *statistics
        yield name, lambda a, m, v: F.batch_norm(a, m, v, training=True), inputs, 3
    labels = torch.randint(0, columns, (len(x),))
    yield "cross entropy", F.cross_entropy, (x, labels), 1
    yield "log sum exp", lambda a: a.logsumexp(-1), (x,), 1


def gradients(x, y, w):
    """The operators that autograd runs, on their own."""
    aten, columns = torch.ops.aten, x.shape[1]
    _, mean, deviation = aten.native_layer_norm(x, [columns], w, w, 1e-5)

    def layer_norm(wanted):
        return lambda g, a, m, r, w: aten.native_layer_norm_backward(g, a, [columns], m, r, w, w, wanted)

    norm = y, x, mean, deviation, w
    yield "layer norm backward, of the input", layer_norm([True, False, False]), norm, 3
    yield "layer norm backward, of all", layer_norm([True, True, True]), norm, 3
    yield "softmax backward", lambda g, p: aten._softmax_backward_data(g, p, -1, torch.float32), (y, x.softmax(-1)), 3
    yield "log softmax backward", lambda g, p: aten._log_softmax_backward_data(g, p, -1, torch.float32), (y, x), 3
    yield "gelu backward", lambda g, a: aten.gelu_backward(g, a), (y, x), 3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=256, help="size of each large tensor")
    elements = parser.parse_args().mib * 2**20 // 4
    keep_freed_memory()
    seconds = watch_compilation()
    source, target = torch.randn(elements), torch.empty(elements)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"{'kernel':36} {'graphlift ms':>13} {'eager ms':>10} {'ratio':>7} {'copy ms':>9} {'of copy':>8}")
    with torch.no_grad():
        for name, function, inputs, tensors in rows(elements):
            calls = [partial(graphlift.compile(function), *inputs), partial(function, *inputs)]
            ours, eager, copy = least([*calls, partial(target.copy_, source)])
            share = tensors / 2 * copy / ours
            print(
                f"{name:36} {ours * 1e3:13.2f} {eager * 1e3:10.2f} {eager / ours:7.2f} {copy * 1e3:9.2f} {share:8.0%}"
            )
    if seconds:
        print(f"{len(seconds)} kernels compiled, {statistics.median(seconds) * 1e3:.1f} ms each at the median")


if __name__ == "__main__":
    main()
