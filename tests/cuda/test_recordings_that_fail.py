"""A recording that comes to nothing leaves the allocator as it was. With stand-ins for torch's functions: no GPU."""

import types

import pytest

from graphlift import cuda_graphs


class Allocator:
    """Which pools allocations go to, and how often each is in use, as torch's allocator counts."""

    def __init__(self):
        self.made, self.underway, self.uses = 0, [], {}

    def pool(self):
        self.made += 1
        return (0, self.made)

    def begin(self, _device, pool):
        assert pool not in self.underway
        self.underway.append(pool)
        self.uses[pool] = self.uses.get(pool, 0) + 1

    def end(self, _device, pool):
        if pool not in self.underway:
            raise RuntimeError("not currently recording to mempool_id")
        self.underway.remove(pool)

    def release(self, _device, pool):
        self.uses[pool] -= 1
        assert self.uses[pool] >= 0


@pytest.fixture
def allocator(monkeypatch):
    found = Allocator()

    class Graph:
        ends_well = True

        def capture_begin(self, pool, capture_error_mode):
            assert capture_error_mode == "thread_local"
            self.pool = pool
            found.begin(0, pool)

        def capture_end(self):
            if not Graph.ends_well:
                raise RuntimeError("operation failed due to a previous error during capture")
            found.end(0, self.pool)

    functions = types.SimpleNamespace(
        _cuda_endAllocateToPool=found.end,
        _cuda_beginAllocateCurrentThreadToPool=found.begin,
        _cuda_releasePool=found.release,
    )
    cuda = types.SimpleNamespace(CUDAGraph=Graph, graph_pool_handle=found.pool)
    monkeypatch.setattr(cuda_graphs, "torch", types.SimpleNamespace(cuda=cuda, _C=functions))
    found.graph = Graph
    return found


def fails(*leaving):
    def launch(place):
        for each in leaving:
            place(each)
        raise MemoryError("no memory")

    return launch


@pytest.mark.parametrize("leaving", [(), (True,), (True, False), (True, False, True)], ids=str)
@pytest.mark.parametrize("ends_well", [True, False], ids=["ends", "was broken off"])
def test_nothing_is_recorded_to_behind_it(allocator, ends_well, leaving):
    allocator.graph.ends_well = ends_well
    with pytest.raises(MemoryError, match="no memory"):
        cuda_graphs._recorded(fails(*leaving), 0, None)
    assert allocator.underway == []
    assert sum(allocator.uses.values()) == 1  # the graph's own, which it gives back as it dies


def test_one_that_succeeds(allocator):
    made = cuda_graphs._recorded(lambda place: (place(True), place(False), place(True)), 0, None)
    assert allocator.underway == []
    made.close()
    assert sum(allocator.uses.values()) == 1
