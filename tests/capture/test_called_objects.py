"""Objects that are called: weak references, patterns, operators of torch.ops, functions with formulas of their own."""

import gc
import logging
import re
import weakref

import torch
from judging import check

import graphlift


def vector(*numbers):
    return torch.tensor([float(n) for n in numbers], requires_grad=True)


class Owner:
    def __init__(self, scale):
        self.scale = scale


def test_a_weak_reference_is_followed():
    owner = Owner(3.0)
    reference = weakref.ref(owner)

    def f(x):
        target = reference()
        return x * 2 if target is None else x * target.scale

    check(f, lambda: (vector(1, 2),), graphs=1, breaks=0)
    compiled = graphlift.compile(f)
    assert compiled(torch.ones(1)).item() == 3
    owner.scale = 5.0
    assert compiled(torch.ones(1)).item() == 5
    del owner
    gc.collect()
    assert compiled(torch.ones(1)).item() == 2


def test_a_dead_weak_reference_is_none():
    reference = weakref.ref(Owner(1.0))
    gc.collect()
    check(lambda x: x * (2 if reference() is None else 3), lambda: (vector(1),), graphs=1, breaks=0)


PATTERN = re.compile(r"layer_(\d+)")


def test_patterns_are_known_by_value():
    def f(x, name):
        shorter = PATTERN.sub(r"\1", name)
        match = PATTERN.match(name)
        return x * (2 if shorter == "7" else 3), shorter, match is not None and match.group(1)

    check(f, lambda: (vector(1), "layer_7"), graphs=1, breaks=0)
    compiled = graphlift.compile(f)
    assert compiled(torch.ones(1), "layer_7")[1] == "7" and compiled(torch.ones(1), "other")[1:] == ("other", False)


def test_another_pattern_is_another_region():
    compiled = graphlift.compile(lambda x, p: x * len(p.sub("", "aabbb")))
    assert [compiled(torch.ones(1), re.compile(p)).item() for p in ("a", "b", "a")] == [3, 2, 3]
    assert graphlift.graph_count() == 2


def test_operators_of_torch_ops():
    def f(x):
        y = torch.ops.aten.mul.Tensor(x, 3.0)
        return torch.ops.aten.add(y, x, alpha=2), torch.ops.aten.relu.default(x)

    check(f, lambda: (vector(1, -2),), graphs=1, breaks=0)


@torch.library.custom_op("graphlift_tests::scaled_sine", mutates_args=())
def scaled_sine(x: torch.Tensor, scale: float) -> torch.Tensor:
    assert x.sum().item() < 100  # the data are there
    return x.detach().sin() * scale


@scaled_sine.register_fake
def _(x, scale):
    return torch.empty_like(x)


def _setup(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.scale = inputs[1]


scaled_sine.register_autograd(lambda ctx, g: (g * ctx.saved_tensors[0].cos() * ctx.scale, None), setup_context=_setup)


def test_custom_operators_stay_whole():
    def f(x):
        return torch.ops.graphlift_tests.scaled_sine(x * 2, 3.0) + scaled_sine(x, 0.5)

    check(f, lambda: (vector(1, -2),), graphs=1, breaks=0)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, by):
        ctx.save_for_backward(x)
        ctx.by = by
        return x**3 * by

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad * ctx.by, None


def test_functions_with_formulas_of_their_own():
    check(lambda x: Cube.apply(x * 2, 2.0) + 1, lambda: (vector(1, 2),), graphs=1, breaks=0)


def test_queries_of_modes():
    def f(x):
        return x * (3 if torch._C._is_torch_function_mode_enabled() else 2)

    check(f, lambda: (vector(1),), graphs=1, breaks=0)


def test_a_logger_that_is_off_costs_no_break(caplog):
    logger = logging.getLogger("graphlift_tests.quiet")
    logger.setLevel(logging.INFO)

    def f(x):
        logger.debug("shape %s of %s", x.shape, x)
        return x * 2

    check(f, lambda: (vector(1),), graphs=1, breaks=0)
    compiled = graphlift.compile(f)
    compiled(torch.ones(1))
    logger.setLevel(logging.DEBUG)
    compiled(torch.ones(1))
    assert any("shape" in record.getMessage() for record in caplog.records)


class Checks(type):
    def __instancecheck__(cls, instance):
        return super().__instancecheck__(instance) or getattr(instance, "passes", False)


class Checked(metaclass=Checks):
    pass


def test_super_in_a_metaclass():
    def program(x):
        return x * 2 if isinstance(x, Checked) or isinstance(x, torch.nn.Buffer) else x + isinstance(Checked(), Checked)

    graphlift.reset()
    compiled = graphlift.compile(program, fullgraph=True)
    for _ in range(2):
        assert torch.equal(compiled(torch.ones(2)), program(torch.ones(2)))
    assert graphlift.graph_count() == 1


def test_an_attribute_that_new_tensors_lack():
    graphlift.reset()
    compiled = graphlift.compile(lambda x: x * 2 + hasattr(x, "passes"), fullgraph=True)
    for _ in range(4):
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))
    assert graphlift.graph_count() == 1
    marked = torch.ones(2)
    marked.passes = True
    assert torch.equal(compiled(marked), torch.full((2,), 3.0))


def test_modes_of_the_recorder_are_not_the_programs():
    compiled = graphlift.compile(lambda x: (x * 2, torch.utils._python_dispatch._get_current_dispatch_mode_stack()))
    assert [compiled(torch.ones(2))[1] for _ in range(2)] == [[], []]
    regions = graphlift.compile(lambda x: x * 2 + torch._C._len_torch_dispatch_stack(), fullgraph=True)
    assert torch.equal(regions(torch.ones(2)), torch.full((2,), 2.0))
    assert graphlift.graph_count() >= 2
