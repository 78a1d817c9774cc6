"""Records launches as a torch.cuda.CUDAGraph. Called by the CUDA backend in the mode "reduce-overhead"."""

import contextlib
import gc
from collections.abc import Callable

import torch

Pool = tuple[int, int]  # as torch's allocator names memory that it keeps apart

_streams: dict[int, torch.cuda.Stream] = {}


class Recorded:
    """A recorded graph and its memory: results that leave have a pool of their own, `inner` is the rest's."""

    def __init__(self, graph: torch.cuda.CUDAGraph, memory: "_Memory") -> None:
        """`memory` is given back by close()."""
        self.graph, self.inner, self._memory = graph, memory.inner, memory

    def close(self) -> None:
        """Gives back what no tensor holds any more. The graph is not replayed again."""
        self._memory.close()


class _Memory:
    """Where the memory of a recording comes from: the pool of the graph itself, or one for what leaves."""

    def __init__(self, device: int, inner: Pool | None) -> None:
        """`inner`: the graph's pool, which is the current one when it begins; None: a new one."""
        self.device, self.own = device, torch.cuda.graph_pool_handle()
        self.inner = self._current = inner or torch.cuda.graph_pool_handle()
        self._begun: dict[Pool, int] = {}

    def place(self, leaving: bool) -> None:
        """Memory comes from the one pool or the other from now on."""
        pool = self.own if leaving else self.inner
        if pool == self._current:
            return
        torch._C._cuda_endAllocateToPool(self.device, self._current)
        self._current = pool
        torch._C._cuda_beginAllocateCurrentThreadToPool(self.device, pool)
        self._begun[pool] = self._begun.get(pool, 0) + 1

    def close(self) -> None:
        """Each beginning counts as a use of its pool."""
        for pool, times in self._begun.items():
            for _ in range(times):
                torch._C._cuda_releasePool(self.device, pool)
        self._begun = {}


def record(launch: Callable[[Callable[[bool], None]], None], device: int, beside: Pool | None) -> Recorded:
    """A graph of what `launch` launches on the device's current stream; nothing of it runs before the first replay.

    `launch` is given a function that says whether memory from then on is of results that leave: those lie in memory of
    the graph's own, since the caller may still hold them when another graph runs. What it needs in between comes from
    `beside`, another graph's, or from a pool of its own too. Raises what stands against recording: a synchronization,
    a copy to the CPU.
    """
    stream = _streams.get(device) or _streams.setdefault(device, torch.cuda.Stream(device))
    current = torch.cuda.current_stream(device)
    torch.cuda.synchronize(device)
    collects = gc.isenabled()
    gc.disable()  # what dies while recording could give back memory, which recording forbids
    torch._C._cuda_clearCublasWorkspaces()  # torch's own, which it makes anew where they are needed
    try:
        stream.wait_stream(current)
        with torch.cuda.stream(stream):
            try:
                return _recorded(launch, device, beside)
            except Exception:
                # The generator of random numbers takes itself to be recorded still: a recording that ends well mends it
                _recorded(lambda _: torch.zeros(1, device=stream.device), device, None).close()
                raise
    finally:
        torch._C._cuda_clearCublasWorkspaces()  # another recording in this memory has one of its own
        current.wait_stream(stream)
        if collects:
            gc.enable()


def _recorded(launch, device: int, beside: Pool | None) -> Recorded:
    graph, memory = torch.cuda.CUDAGraph(), _Memory(device, beside)
    graph.capture_begin(pool=memory.inner, capture_error_mode="thread_local")
    try:
        launch(memory.place)
        memory.place(False)
    except BaseException:
        with contextlib.suppress(RuntimeError):  # says that the recording came to nothing
            memory.place(False)
            graph.capture_end()
        with contextlib.suppress(RuntimeError):  # which is before it tells the allocator; else that it was told
            torch._C._cuda_endAllocateToPool(device, memory.inner)
        memory.close()
        raise
    graph.capture_end()
    return Recorded(graph, memory)
