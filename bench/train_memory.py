"""Memory of a long training run: what is resident and which tensors live behind step 10 and behind the last step.

    python bench/train_memory.py [--steps 200] [--width 4096]

The model, batch and optimizer are those of examples/train_mlp.py. Exits non-zero when memory, tensors or other objects
pile up, or when a region is left behind reset().
"""

import argparse
import ctypes
import gc
import os

import torch

import graphlift


def resident():
    """Bytes of this process in memory, without pages that the heap keeps free: those come and go by tens of MiB."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measured():
    """MiB resident, living tensors, the MiB that they need, and objects that the collector knows."""
    objects = gc.get_objects()
    tensors = [item for item in objects if type(item) in (torch.Tensor, torch.nn.Parameter)]
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    return resident() / 2**20, len(tensors), sum(storages.values()) / 2**20, len(objects)


def main():
    """Trains, prints, and fails when objects or regions pile up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--width", type=int, default=4096)
    options = parser.parse_args()
    torch.manual_seed(0)
    width = options.width
    layers = [torch.nn.Linear(1024, width), torch.nn.GELU(), torch.nn.Linear(width, width), torch.nn.GELU()]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(width, 1024))
    compiled, optimizer = graphlift.compile(model), torch.optim.AdamW(model.parameters(), lr=1e-4)
    x, y = torch.randn(64, 1024), torch.randn(64, 1024)
    marks = {}
    for step in range(1, options.steps + 1):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(compiled(x), y).backward()
        optimizer.step()
        if step in (10, options.steps):
            gc.collect()
            marks[step] = measured()
            print("step {}: {:.1f} MiB resident, {} tensors of {:.1f} MiB, {} objects".format(step, *marks[step]))
    early, late = marks[10], marks[options.steps]
    assert late[1:3] == early[1:3], f"tensors: {early[1:3]} became {late[1:3]}"
    assert late[3] <= early[3] + 50, f"{late[3] - early[3]} objects more"
    assert late[0] <= early[0] + 4, f"{late[0] - early[0]:.1f} MiB more"
    assert graphlift.graph_count() == 1
    graphlift.reset()
    del compiled
    gc.collect()
    print(f"regions left: {graphlift.counters()['live_regions']}")
    assert graphlift.counters()["live_regions"] == 0


if __name__ == "__main__":
    main()
