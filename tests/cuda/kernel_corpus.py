"""What kernels are checked with: names and checks, each of which gives a problem in words or None. Eager is the oracle.

Programs are recorded and run by the test module `graphlift_runtime`, on any device and backend.
"""

import functools
import os

import random_kernels as random_programs
import torch
from kernel_programs import PROGRAMS
from product_programs import PRODUCTS

import graphlift_runtime as runtime

# Relative and absolute, by dtype. Sums in another order; 16-bit floats keep more between fused calls.
TOLERANCE = {
    torch.float64: (1e-8, 1e-9),
    torch.float32: (1e-4, 2e-5),
    torch.bfloat16: (3e-2, 3e-2),
    torch.float16: (6e-3, 6e-3),
}
RANDOM_PROGRAMS = 300
SAMPLES_PER_OPERATOR = 12
TILINGS = 8
TURN = int(os.environ.get("GRAPHLIFT_TEST_TURN", "0"))  # by hand: 0 to 7 run each program in each tiling


def tolerance(tensors):
    """What the least exact type of a program allows."""
    known = [TOLERANCE[t.dtype] for t in tensors if t is not None and t.dtype in TOLERANCE]
    return max(known, default=(0, 0))


def steps(tensor):
    """Strides of dims that have any."""
    return [stride for size, stride in zip(tensor.shape, tensor.stride()) if size > 1]


def different(eager, got, outputs, inputs):
    """How two lists of results differ, or None. Behind the outputs come gradients, whose layout is nobody's promise."""
    loosest = tolerance([*inputs, *eager])
    for i, (a, b) in enumerate(zip(eager, got, strict=True)):
        if (a is None) != (b is None):
            return f"result {i} is {b} instead of {a}"
        if a is None:
            continue
        for fact in ("dtype", "shape", "device"):
            if getattr(a, fact) != getattr(b, fact):
                return f"result {i}: {fact} {getattr(b, fact)} instead of {getattr(a, fact)}"
        if i < outputs and a.numel() and steps(a) != steps(b):
            return f"result {i}: strides {b.stride()} instead of {a.stride()}"
        relative, absolute = loosest if a.is_floating_point() else (0, 0)
        scale = a.abs().double().nan_to_num(0, 0, 0).max().item() if a.numel() and a.is_floating_point() else 1
        if not torch.allclose(a, b, rtol=relative, atol=absolute * max(1, scale), equal_nan=True):
            wrong = ~torch.isclose(a, b, rtol=relative, atol=absolute, equal_nan=True)
            at = wrong.nonzero()[0].tolist()
            return (
                f"result {i} {a.dtype}{list(a.shape)}: {int(wrong.sum())} of {a.numel()} wrong, at {at}"
                f" {b[tuple(at)].item()} instead of {a[tuple(at)].item()}"
            )
    return None


def run(function, make, device):
    """Outputs and gradients of one call."""
    inputs = make(device)
    outputs = list(function(inputs))
    gradients = []
    wanted = [t for t in outputs if t.requires_grad]
    if wanted:
        torch.manual_seed(1)
        weights = [torch.rand(t.shape).to(t.dtype).to(t.device) for t in wanted]
        leaves = [t for t in inputs if t.requires_grad]
        gradients = list(torch.autograd.grad(wanted, leaves, weights, allow_unused=True))
    return [t.detach() for t in outputs] + gradients, len(outputs)


def check(function, make, device, backend, symbolic=(), mode="default"):
    """Eager against the backend, on the sizes that were recorded and, where they may vary, on others."""
    eager, outputs = run(lambda inputs: function(*inputs), make, device)
    try:
        runner = runtime.record(lambda *inputs: list(function(*inputs)), make(device), list(symbolic), backend, mode)
    except NotImplementedError:
        return None
    symbols = [size for t, dims in zip(make(device), symbolic) for size in (t.shape[d] for d in dims)]
    got, _ = run(lambda inputs: runner(inputs, symbols or [8] * 4), make, device)
    return different(eager, got, outputs, make(device))


def named(kind):
    """Exceptions are problems, too."""

    def guarded(*args):
        try:
            return kind(*args)
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:1500]}"

    return guarded


def check_kernels(*args):
    """As check(), where something has to be a kernel: torch's own would be right, too."""
    before = runtime.kernels()
    return check(*args) or (None if runtime.kernels() > before else "no kernel was made")


def programs(device, backend):
    for one in PROGRAMS:
        yield one.name, functools.partial(named(check_kernels), one.function, one.make, device, backend, one.symbolic)


def tiled(device, backend):
    """Programs with schedules that measuring may choose: each in the next one's turn."""
    for i, one in enumerate(PROGRAMS):
        name = f"{backend}_{1 + (i + TURN) % TILINGS}"
        yield (
            f"{one.name} {name}",
            functools.partial(named(check_kernels), one.function, one.make, device, name, one.symbolic),
        )


def products(device, backend):
    for one in PRODUCTS:
        yield one.name, functools.partial(named(check), one.function, one.make, device, backend, one.symbolic)


def random(device, backend):
    for seed in range(RANDOM_PROGRAMS):
        function, make = random_programs.make(seed)
        yield f"random {seed}", functools.partial(named(check), function, make, device, backend)


# --- operators, by the samples that shape rules have ---
def operators(device, backend):
    import checking
    from samples import TABLE

    lowered = set(runtime.lowered_operators())
    for name in checking.NAMES:
        if name in TABLE and name in lowered:
            yield name, functools.partial(named(check_operator), name, device, backend)


def check_operator(name, device, backend):
    import checking
    from making import Make
    from rules import overload
    from samples import TABLE

    samples = [sample for generator in TABLE[name] for sample in generator(Make(device))]
    wrong = []
    for sample in samples[:: max(1, len(samples) // SAMPLES_PER_OPERATOR)]:
        problem = named(check_sample)(overload(name), sample, device, backend)
        if problem:
            wrong.append(f"{checking.show(sample)[:200]}: {problem}")
    return f"{len(wrong)} wrong:\n   " + "\n   ".join(wrong[:4]) if wrong else None


def check_sample(operator, sample, device, backend):
    tensors = []

    def taken(value):
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            return len(tensors) - 1, None
        if isinstance(value, (list, tuple)):
            return None, [taken(item) for item in value]
        return None, value

    places = [taken(value) for value in (*sample.args, *sample.kwargs.values())]

    def given(place, inputs):
        index, value = place
        if index is not None:
            return inputs[index]
        return [given(item, inputs) for item in value] if isinstance(value, list) else value

    def function(*inputs):
        values = [given(place, inputs) for place in places]
        count = len(sample.args)
        result = operator(*values[:count], **dict(zip(sample.kwargs, values[count:])))
        results = result if isinstance(result, (list, tuple)) else [result]
        return [t for t in results if isinstance(t, torch.Tensor)]

    try:
        with torch.no_grad():
            function(*(t.detach() for t in tensors))
    except Exception:
        return None
    with torch.no_grad():
        return check(function, lambda _: [t.detach() for t in tensors], device, backend)
