"""Fused kernels on CUDA beside eager and the GPU's copy bandwidth.

    python bench/cuda_kernels.py [--only softmax] [--kernels]

Sizes are beyond the caches. "of copy": bytes that must be moved, per second, as a share of what copying 1 GiB
moves. With --kernels, the microseconds of each launch as torch's profiler tells them.
"""

import argparse

import torch
import torch.nn.functional as F

import graphlift


def milliseconds(function, runs=20):
    """Of one call, the least of `runs`. The GPU is kept busy in front, so that the host is ahead of it."""
    for _ in range(3):
        function()
    times = []
    for _ in range(runs):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(500_000)
        start.record()
        function()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return min(times)


def forward(name, function, *shapes, moves):
    """`shapes`: of inputs; `moves`: tensors of the first one's size that are read and written."""
    return name, function, shapes, moves, False


def backward(name, function, *shapes, moves):
    return name, function, shapes, moves, True


def layer_norm_backward(name, rows, size):
    return backward(name, lambda a, w, b: F.layer_norm(a, [size], w, b), [rows, size], [size], [size], moves=3)


ROWS = [
    forward("chain of two inputs", lambda a, b: torch.tanh(a * b + 1) * torch.sigmoid(a), [2**27], [2**27], moves=3),
    forward("softmax 16384x4096", lambda a: a.softmax(-1), [16384, 4096], moves=2),
    forward("softmax 2048x50257", lambda a: a.softmax(-1), [2048, 50257], moves=2),
    forward("log softmax 2048x50257", lambda a: a.log_softmax(-1), [2048, 50257], moves=2),
    forward("softmax 64x1048576", lambda a: a.softmax(-1), [64, 2**20], moves=2),
    forward("layer norm 16384x4096", lambda a: F.layer_norm(a, a.shape[1:]), [16384, 4096], moves=2),
    forward("layer norm 1048576x64", lambda a: F.layer_norm(a, a.shape[1:]), [2**20, 64], moves=2),
    forward("row sum 16384x4096", lambda a: a.sum(1), [16384, 4096], moves=1),
    forward("column sum 16384x4096", lambda a: a.sum(0), [16384, 4096], moves=1),
    forward("column sum 1048576x64", lambda a: a.sum(0), [2**20, 64], moves=1),
    forward("full sum", lambda a: a.sum(), [2**28], moves=1),
    forward("transposing copy", lambda a: a.t().contiguous() + 1, [8192, 16384], moves=2),
    backward("softmax backward", lambda a: a.softmax(-1), [32768, 2048], moves=3),
    backward("softmax backward 2048x50257", lambda a: a.softmax(-1), [2048, 50257], moves=3),
    layer_norm_backward("layer norm backward", 32768, 2048),
    layer_norm_backward("layer norm backward 262144x256", 2**18, 256),
    layer_norm_backward("layer norm backward 16384x4096", 16384, 4096),
    layer_norm_backward("layer norm backward 8192x8192", 8192, 8192),
    backward("rms norm backward 32768x2048", lambda a, w: F.rms_norm(a, [2048], w), [32768, 2048], [2048], moves=3),
    backward("gelu backward", F.gelu, [2**27], moves=3),
]


def calls(row, dtype):
    """What is measured: of graphlift, and of eager."""
    _, function, shapes, _, is_backward = row
    inputs = [torch.randn(shape, device="cuda", dtype=dtype, requires_grad=is_backward) for shape in shapes]
    for how in (graphlift.compile(function, fullgraph=True), function):
        if not is_backward:
            yield lambda how=how: how(*inputs)
            continue
        result = how(*inputs)
        seed = torch.randn_like(result)
        yield lambda result=result, seed=seed: torch.autograd.grad(result, inputs, seed, retain_graph=True)


def launches(function):
    """A line per kernel that one call launches."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        function()
        torch.cuda.synchronize()
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            print(f"    {event.device_time:10.1f} us  {event.name[:90]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="part of the names to run")
    parser.add_argument("--kernels", action="store_true")
    options = parser.parse_args()
    source = torch.empty(2**28, device="cuda")
    target = torch.empty_like(source)
    bandwidth = 2 * source.nbytes / milliseconds(lambda: target.copy_(source))
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}, copy {bandwidth / 1e9:.2f} TB/s")
    print(f"{'kernel':30} {'dtype':9} {'graphlift ms':>13} {'eager ms':>10} {'ratio':>7} {'of copy':>8}")
    for row in ROWS:
        name, _, shapes, moves, is_backward = row
        if options.only not in name:
            continue
        for dtype in (torch.float32, torch.bfloat16):
            with torch.set_grad_enabled(is_backward):
                compiled, plain = calls(row, dtype)
            ours, eager = milliseconds(compiled), milliseconds(plain)
            size = torch.Size(shapes[0]).numel() * dtype.itemsize
            share = moves * size / ours / bandwidth
            print(
                f"{name:30} {str(dtype)[6:]:9} {ours:13.3f} {eager:10.3f} {eager / ours:7.2f} {share:8.0%}", flush=True
            )
            if options.kernels:
                launches(compiled)


if __name__ == "__main__":
    main()
