"""Records launches as a torch.cuda.CUDAGraph. Called by the CUDA backend in the mode "reduce-overhead"."""

import contextlib
import gc
from collections.abc import Callable

import torch

_streams: dict[int, torch.cuda.Stream] = {}


def record(launch: Callable[[], None], device: int) -> torch.cuda.CUDAGraph:
    """A graph of what `launch` launches on the device's current stream; nothing of it runs before the first replay.

    Each graph has memory of its own: what one writes in between, another's results could lie in, which the caller may
    still hold. Raises what stands against recording: a synchronization, a copy to the CPU.
    """
    stream = _streams.get(device) or _streams.setdefault(device, torch.cuda.Stream(device))
    current = torch.cuda.current_stream(device)
    torch.cuda.synchronize(device)
    collects = gc.isenabled()
    gc.disable()  # what dies while recording could give back memory, which recording forbids
    try:
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            try:
                return _recorded(launch)
            except Exception:
                # The generator of random numbers takes itself to be recorded still: a recording that ends well mends it
                _recorded(lambda: torch.zeros(1, device=stream.device))
                raise
    finally:
        current.wait_stream(stream)
        if collects:
            gc.enable()


def _recorded(launch) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    graph.capture_begin(capture_error_mode="thread_local")
    try:
        launch()
    except BaseException:
        with contextlib.suppress(RuntimeError):  # says that the recording came to nothing
            graph.capture_end()
        raise
    graph.capture_end()
    return graph
