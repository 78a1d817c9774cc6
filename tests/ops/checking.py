"""Checks samples of the whole table. Run as a program it reports on one device: `checking.py [device] [part] [parts] [after]`."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    __import__("build_folder")

import samples_attention  # noqa: F401
import samples_factories  # noqa: F401
import samples_grids  # noqa: F401
import samples_indexing  # noqa: F401
import samples_layers  # noqa: F401
import samples_pointwise  # noqa: F401
import samples_reductions  # noqa: F401
import samples_spectral  # noqa: F401
import samples_steps  # noqa: F401
import samples_views  # noqa: F401
import torch
from making import Make
from rules import KERNEL_ERRORS, eager, infer, ops, overlaps_itself
from samples import TABLE

NAMES = sorted(ops.names())
MODES = ("constant", "duck", "distinct")


def show(sample):
    """The call in words."""

    def one(value):
        if isinstance(value, torch.Tensor):
            return f"{value.dtype}{list(value.shape)}{list(value.stride())}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(one, value)) + "]"
        return repr(value)

    return ", ".join([one(a) for a in sample.args] + [f"{k}={one(v)}" for k, v in sample.kwargs.items()])


def problem(name, sample):
    """What is wrong with the rule's answers, or None; and whether it answered."""
    shown = show(sample)
    answers = {mode: infer(name, sample, mode) for mode in MODES}
    truth = eager(name, sample)
    answered = answers["constant"][0] is not None
    for mode, (answer, env) in answers.items():
        if not env.guards_hold():
            return f"{shown}: {mode}: guards do not hold: {env.guards()}", answered
        if isinstance(truth, Exception):
            if answer is not None and not any(words in str(truth) for words in KERNEL_ERRORS):
                return f"{shown}: eager raises {str(truth)[:200]}, the rule says {answer}", answered
        elif answer is None:
            in_place = name.partition(".")[0].endswith("_") and overlaps_itself(sample.args[0])
            if not sample.outside and not in_place:
                return f"{shown}: {mode}: declined; eager gives {truth}", answered
        elif answer != truth:
            return f"{shown}: {mode}: {answer}; eager gives {truth}", answered
    return None, answered


def check(name, device="cpu"):
    """Number of samples, number of answers, and what was wrong."""
    count, answered, wrong = 0, 0, []
    for generator in TABLE[name]:
        for sample in generator(Make(device)):
            error, answer = problem(name, sample)
            count += 1
            answered += answer
            if error:
                wrong.append(error)
    return count, answered, wrong


def report(device="cpu", part=0, parts=1, after=""):
    """Prints every operator of one part of the table, behind `after`, whose rule is wrong on the device or never answers."""
    for name in NAMES[int(part) :: int(parts)]:
        if name <= after:
            continue
        print(name, file=sys.stderr, flush=True)  # so that a crash names its operator
        try:
            count, answered, wrong = check(name, device)
        except Exception as error:
            print(f"## {name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            continue
        if wrong:
            print(f"## {name}: {len(wrong)} of {count}", *(line[:900] for line in wrong[:8]), sep="\n     ", flush=True)
        elif not answered:
            print(f"## {name}: no answer", flush=True)


if __name__ == "__main__":
    report(*sys.argv[1:])
