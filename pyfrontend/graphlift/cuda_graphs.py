"""Records launches as a torch.cuda.CUDAGraph. Called by the CUDA backend in the mode "reduce-overhead"."""

import contextlib
import gc
import weakref
from collections.abc import Callable

import torch

_streams: dict[int, torch.cuda.Stream] = {}
# By device and the stream that graphs are replayed on: a pool of memory, and the graphs that keep it.
_pools: dict[tuple[int, int], tuple[tuple[int, int], weakref.WeakSet]] = {}


def record(launch: Callable[[], None], device: int) -> torch.cuda.CUDAGraph:
    """A graph of what `launch` launches on the device's current stream; nothing of it runs before the first replay.

    All graphs of a stream share a pool of memory, since they are replayed one behind the other. Raises what stands
    against recording: a synchronization, a copy to the CPU.
    """
    stream = _streams.get(device) or _streams.setdefault(device, torch.cuda.Stream(device))
    current = torch.cuda.current_stream(device)
    pool, graphs = _pool(device, current.cuda_stream)
    torch.cuda.synchronize(device)
    collects = gc.isenabled()
    gc.disable()  # what dies while recording could give back memory, which recording forbids
    try:
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            try:
                graph = _recorded(launch, pool)
                graphs.add(graph)
                return graph
            except Exception:
                # The generator of random numbers takes itself to be recorded still: a recording that ends well mends it
                _recorded(lambda: torch.zeros(1, device=stream.device), None)
                raise
    finally:
        current.wait_stream(stream)
        if collects:
            gc.enable()


def _pool(device, stream):
    pool, graphs = _pools.get((device, stream), (None, ()))
    if not graphs:  # a pool ends with its last graph
        pool, graphs = _pools[device, stream] = torch.cuda.graph_pool_handle(), weakref.WeakSet()
    return pool, graphs


def _recorded(launch, pool) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    graph.capture_begin(pool=pool, capture_error_mode="thread_local")
    try:
        launch()
    except BaseException:
        with contextlib.suppress(RuntimeError):  # says that the recording came to nothing
            graph.capture_end()
        raise
    graph.capture_end()
    return graph
