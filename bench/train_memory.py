"""Memory of a long training run: resident and traced bytes behind step 10 and behind the last step, and regions left.

python bench/train_memory.py [--steps 200]
"""

import argparse
import gc
import os

import torch

import graphlift


def resident():
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main():
    """Trains, prints, and fails when objects or regions pile up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256))
    compiled, optimizer = graphlift.compile(model), torch.optim.AdamW(model.parameters())
    x, y = torch.randn(64, 256), torch.randn(64, 256)
    marks = {}
    for step in range(1, options.steps + 1):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(compiled(x), y).backward()
        optimizer.step()
        if step in (10, options.steps):
            gc.collect()
            marks[step] = (resident(), len(gc.get_objects()))
            print(f"step {step}: {marks[step][0] / 2**20:.1f} MiB resident, {marks[step][1]} objects")
    (early, objects), (late, objects_late) = marks[10], marks[options.steps]
    assert objects_late <= objects + 50, f"{objects_late - objects} objects more"
    assert late <= early + 4 * 2**20, f"{(late - early) / 2**20:.1f} MiB more"
    assert graphlift.graph_count() == 1
    graphlift.reset()
    del compiled
    gc.collect()
    print(f"regions left: {graphlift.counters()['live_regions']}")
    assert graphlift.counters()["live_regions"] == 0


if __name__ == "__main__":
    main()
