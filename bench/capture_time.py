"""How long a capture takes, forward and backward, beside torch.compile(backend="aot_eager"), in one run.

    python bench/capture_time.py [--no-peer]

The model is a 6-layer TransformerEncoder; a figure is the first call behind a reset, in milliseconds.
"""

import argparse
import time

import torch

import graphlift


def first_call(compiled, x):
    """Milliseconds of one call that has to capture."""
    begin = time.perf_counter()
    compiled(x).sum().backward()
    return (time.perf_counter() - begin) * 1e3


def main():
    """Prints the row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-peer", action="store_true", help="leave torch.compile out")
    options = parser.parse_args()
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model, x = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False), torch.randn(2, 16, 64)
    model(x).sum().backward()
    begin = time.perf_counter()
    model(x).sum().backward()
    eager = (time.perf_counter() - begin) * 1e3
    ours = []
    for _ in range(3):
        graphlift.reset()
        ours.append(first_call(graphlift.compile(model), x))
        assert graphlift.counters()["graphs"] == 1 and graphlift.counters()["graph_breaks"] == 0
    row = f"eager {eager:.1f} | graphlift first {ours[0]:.1f}, second {ours[1]:.1f}, third {ours[2]:.1f}"
    if not options.no_peer:
        theirs = []
        for _ in range(2):
            torch._dynamo.reset()
            theirs.append(first_call(torch.compile(model, backend="aot_eager"), x))
        row += f" | torch.compile(backend='aot_eager') first {theirs[0]:.1f}, second {theirs[1]:.1f}"
    print(f"torch {torch.__version__}, TransformerEncoder of 6 layers, forward + backward, milliseconds")
    print(row)


if __name__ == "__main__":
    main()
