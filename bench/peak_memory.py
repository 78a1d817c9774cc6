"""Most memory that training takes on CPU beyond what is resident before the first step, one process a cell.

    python bench/peak_memory.py [--full] [--names gpt,convnet] [--hows eager,compile,graphlift] [--steps 5]

MiB beyond what there was before the first step. Of the process alone: its own peak (VmHWM, reset first); compiling is
part of it in the column "first", and not in "later"; "data" is "later" without pages of files (code of libraries, which
the system can drop and shares between processes). Of the process and all that it starts (compilers, workers), sampled
each 20 ms from outside: "tree first" is the most during the first step, "tree later" the median of later steps, for a
second at least. There a page that processes share counts for each in part (PSS).
"""

import argparse
import json
import select
import statistics
import subprocess
import sys
import time
from pathlib import Path

HOWS = ("eager", "compile", "graphlift")
COLUMNS = ("first", "later", "data", "tree first", "tree later")
PERIOD_S, LATER_S = 0.02, 1.0


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


def say(result):
    """To the process that samples, which answers when it is done with what there is now."""
    print(json.dumps(result), flush=True)
    sys.stdin.readline()


def cell(name, how, full, steps):
    """Says the peaks of the first step, of later ones, and of later ones without files, each when it is known."""
    step = step_of(name, how, full)
    before, data = status("VmRSS"), status("RssAnon")
    say(None)
    reset_peak()
    step()
    say(status("VmHWM") - before)
    reset_peak()
    end = time.monotonic() + LATER_S
    while steps > 0 or time.monotonic() < end:
        step()
        steps -= 1
    peak = status("VmHWM")
    say([peak - before, peak - status("RssFile") - data])


def tree(pid):
    """A process and all below it."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += tree(int(child))
    return found


def pss(pid):
    """MiB of a process and of all that it started, those that end meanwhile left out."""
    total = 0
    try:
        members = tree(pid)
    except OSError:
        members = [pid]
    for member in members:
        try:
            text = Path(f"/proc/{member}/smaps_rollup").read_text()
            total += int(text.split("\nPss:")[1].split()[0])
        except (OSError, IndexError):
            continue
    return total / 1024


def measured(command):
    """The columns of a cell."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    said, samples = [], [[]]
    while len(said) < 3:
        ready, _, _ = select.select([process.stdout], [], [], PERIOD_S)
        samples[-1].append(pss(process.pid))
        if not ready:
            continue
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"{command} ended early: {process.wait()}")
        said.append(json.loads(line))
        samples.append([])
        process.stdin.write("\n")
        process.stdin.flush()
    process.wait()
    start, first, later = samples[0][-1], samples[1], samples[2]
    return [said[1], *said[2], max(first) - start, statistics.median(later) - start]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="full sizes instead of small ones")
    parser.add_argument("--names", default="")
    parser.add_argument("--hows", default=",".join(HOWS))
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--cell", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        return cell(*options.cell, options.full, options.steps)
    # This process maps nothing that a cell maps too.
    listed = [sys.executable, "-c", "import models; print(','.join(models.WORKLOADS))"]
    names = options.names or subprocess.run(listed, capture_output=True, text=True, cwd=Path(__file__).parent).stdout

    print("| workload | engine | " + " | ".join(COLUMNS) + " |")
    print("|---" * (2 + len(COLUMNS)) + "|")
    for name in names.strip().split(","):
        for how in options.hows.split(","):
            command = [sys.executable, __file__, "--cell", name, how, "--steps", str(options.steps)]
            peaks = measured(command + ["--full"] * options.full)
            print(f"| {name} | {how} | " + " | ".join(f"{peak:.0f}" for peak in peaks) + " |", flush=True)


if __name__ == "__main__":
    main()
