"""What a call of a 12-layer Hugging Face model costs before its graph runs: guards, and fetching the graph's inputs.

    python bench/guard_cost.py [--names bert,gpt2,llama]

Needs transformers. Both engines get the same backend, whose graph gives outputs that it kept from the first call, so
that a call is guards, inputs and one call of a Python function with them. "guards": graphlift's check alone, over and
over, which fetches the inputs on its way. Microseconds per call, one thread, no grad, best of several batches, both
engines in one run. Random weights, narrow layers: guards do not depend on the width.
"""

import argparse
import itertools
import time

import torch

import graphlift

BATCHES = 15
CALLS = 300


def bert():
    """Encoder, 12 layers."""
    import transformers as t

    config = t.BertConfig(num_hidden_layers=12, hidden_size=32, num_attention_heads=4, intermediate_size=64)
    return t.BertModel(config)


def gpt2():
    """Decoder, 12 layers."""
    import transformers as t

    return t.GPT2Model(t.GPT2Config(n_layer=12, n_embd=32, n_head=4, use_cache=False))


def llama():
    """Decoder, 12 layers, rotary embeddings."""
    import transformers as t

    config = t.LlamaConfig(
        num_hidden_layers=12,
        hidden_size=32,
        num_attention_heads=4,
        intermediate_size=64,
        vocab_size=1000,
        use_cache=False,
    )
    return t.LlamaModel(config)


MODELS = {"bert": bert, "gpt2": gpt2, "llama": llama}


def keeping_backend(counts):
    """A backend whose graphs run once and then give what they gave."""

    def backend(gm, example_inputs):
        kept = []
        counts.append(len(example_inputs))

        def run(*inputs):
            if not kept:
                kept.append(gm(*inputs))
            return kept[0]

        return run

    return backend


def best(model, ids):
    """Microseconds per call, best batch."""
    figures = []
    with torch.no_grad():
        for _ in range(5):
            model(ids)
        for _ in range(BATCHES):
            times = itertools.repeat(None, CALLS)
            begin = time.perf_counter()
            for _ in times:
                model(ids)
            figures.append((time.perf_counter() - begin) / CALLS * 1e6)
    return min(figures)


def own_guards(model, ids):
    """Of the forward alone, compiled by itself."""
    forward = graphlift.compile(type(model).forward, backend=keeping_backend([]))
    with torch.no_grad():
        for _ in range(5):
            forward(model, ids)
        return graphlift._C.guard_seconds(forward, (model, ids), BATCHES, CALLS) * 1e6


def main():
    """Prints a row per model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", default=",".join(MODELS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.names.split(","):
        model, ids = MODELS[name]().eval(), torch.randint(0, 900, (2, 16))
        row = []
        for engine, compiler in (("graphlift", graphlift.compile), ("torch.compile", torch.compile)):
            counts = []
            figure = best(compiler(model, backend=keeping_backend(counts)), ids)
            alone = f", guards {own_guards(model, ids):.1f}" if engine == "graphlift" else ""
            row.append(f"{engine} {figure:.1f}{alone} ({len(counts)} graph, {sum(counts)} inputs)")
        print(f"{name}, 12 layers: {' | '.join(row)}", flush=True)


if __name__ == "__main__":
    main()
