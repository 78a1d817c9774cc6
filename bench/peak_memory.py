"""Most memory that training takes on CPU beyond what is resident before the first step, one process a cell.

    python bench/peak_memory.py [--full] [--names gpt,convnet] [--hows eager,compile,graphlift] [--steps 5]

MiB: the process's own peak (VmHWM, reset before the first step) minus what was resident then. Compiling is part of it
in the column "first", and not in "later". "data" is "later" without pages of files (code of libraries, which the system
can drop and shares between processes).
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

HOWS = ("eager", "compile", "graphlift")


def status(field):
    """MiB of a line of /proc/self/status."""
    text = Path("/proc/self/status").read_text()
    return int(text.split(field + ":")[1].split()[0]) / 1024


def reset_peak():
    """VmHWM is what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


def step_of(name, how, full):
    """One step of training."""
    import models
    import torch

    module, inputs = models.make(name, small=not full)
    function = module
    if how == "compile":
        function = torch.compile(module)
    elif how == "graphlift":
        import graphlift

        function = graphlift.compile(module)
    parameters = list(module.parameters())
    optimizer = torch.optim.SGD(parameters, lr=1e-6) if parameters else None

    def step():
        loss = function(*inputs).float().pow(2).mean()
        if optimizer:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    return step


def cell(name, how, full, steps):
    """The peaks of the first step, of later ones, and of later ones without files."""
    step = step_of(name, how, full)
    peaks = []
    before, data = status("VmRSS"), status("RssAnon")
    for count in (1, steps):
        reset_peak()
        for _ in range(count):
            step()
        peaks.append(status("VmHWM") - before)
    return [*peaks, status("VmHWM") - status("RssFile") - data]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="full sizes instead of small ones")
    parser.add_argument("--names", default="")
    parser.add_argument("--hows", default=",".join(HOWS))
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--cell", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        print(json.dumps(cell(*options.cell, options.full, options.steps)))
        return
    import models

    hows = options.hows.split(",")
    print("| workload | " + " | ".join(f"{how}: first | later | data" for how in hows) + " |")
    print("|---" * (1 + 3 * len(hows)) + "|")
    for name in options.names.split(",") if options.names else models.WORKLOADS:
        row = [name]
        for how in hows:
            command = [sys.executable, __file__, "--cell", name, how, "--steps", str(options.steps)]
            done = subprocess.run(command + ["--full"] * options.full, capture_output=True, text=True)
            peaks = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None
            row += [f"{peak:.0f}" for peak in peaks] if peaks else 3 * ["failed"]
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
