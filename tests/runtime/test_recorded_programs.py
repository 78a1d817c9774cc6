"""Programs recorded by the real tracer and run as regions: what a caller sees of them is what eager shows."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

runtime = pytest.importorskip("graphlift_runtime")


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


class Program:
    """A function over tensors, with how to make its leaves and its inputs from them."""

    def __init__(self, function, make_leaves, make_inputs=None):
        self.function = function
        self.make_leaves = make_leaves
        self.make_inputs = make_inputs or (lambda *leaves: list(leaves))

    def fresh(self):
        """Equal leaves and inputs at each call."""
        torch.manual_seed(11)
        leaves = self.make_leaves()
        return leaves, list(self.make_inputs(*leaves))


def storages(tensors):
    return [tensor.untyped_storage().data_ptr() for tensor in tensors]


def version(tensor):
    return None if tensor.is_inference() else tensor._version


def index_of(tensor, tensors):
    return next((i for i, other in enumerate(tensors) if other is tensor), None)


def facts(output, outputs, inputs):
    """What a caller can see of an output apart from its data."""
    base = output._base if not output.is_inference() and output._is_view() else None
    pointer = output.untyped_storage().data_ptr()
    return {
        "type": type(output),
        "dtype": output.dtype,
        "shape": output.shape,
        "stride": output.stride(),
        "requires_grad": output.requires_grad,
        "leaf": output.is_leaf,
        "inference": output.is_inference(),
        "is input": index_of(output, inputs),
        "is output": index_of(output, outputs),
        "base is input": index_of(base, inputs),
        "base is output": index_of(base, outputs),
        "shares with inputs": [p == pointer for p in storages(inputs)],
        "shares with outputs": [p == pointer for p in storages(outputs)],
    }


def run_backward(outputs, inputs, uses):
    torch.manual_seed(5)
    total = 0
    for i, tensor in enumerate([*outputs, *(t for t in inputs if not t.is_leaf)]):
        weight = torch.rand(tensor.shape).to(tensor.dtype)
        if tensor.requires_grad and (uses is None or i in uses):
            total = total + (tensor * weight).sum()
    if isinstance(total, torch.Tensor) and total.requires_grad:
        (total.real if total.is_complex() else total).backward()


def check(program, uses=None, exact=True, symbolic=()):
    """Compares eager and region; `uses`: the outputs that the loss is made of."""
    torch.manual_seed(3)
    _, inputs = program.fresh()
    run = runtime.record(program.function, inputs, list(symbolic))
    results = []
    for call in (lambda i: program.function(*i), lambda i: run(i, [8] * 4)):
        leaves, inputs = program.fresh()
        versions = [version(tensor) for tensor in inputs]
        torch.manual_seed(3)
        outputs = list(call(inputs))
        wrote = [version(tensor) != before for tensor, before in zip(inputs, versions)]
        seen = [facts(output, outputs, inputs) for output in outputs]
        values = [tensor.detach().clone() for tensor in [*outputs, *inputs]]
        run_backward(outputs, inputs, uses)
        results.append((seen, wrote, values, [tensor.grad for tensor in leaves]))
    eager, region = results
    assert region[0] == eager[0]
    assert region[1] == eager[1], "which inputs were written"
    tolerance = {"rtol": 0, "atol": 0} if exact else {}
    torch.testing.assert_close(region[2], eager[2], **tolerance)
    for got, expected in zip(region[3], eager[3]):
        assert (got is None) == (expected is None)
        if got is not None:
            torch.testing.assert_close(got, expected)
    return run


# --- several outputs ---


def three_outputs(x, w):
    h = x @ w
    return [h.relu(), h.sum(), (h * 2).sigmoid()]


@pytest.mark.parametrize("uses", [None, [0], [1], [2], [0, 2], []])
def test_several_outputs_some_unused(uses):
    check(Program(three_outputs, lambda: [leaf(4, 6), leaf(6, 5)]), uses=uses)


def separate(a, b):
    return [a.exp(), b.log()]


def test_an_unused_output_leaves_none_and_no_nan():
    check(Program(separate, lambda: [leaf(3), torch.zeros(3, requires_grad=True)]), uses=[0])


def mixed_dtypes(x):
    values, indices = x.max(1)
    return [values, indices, x > 0, x.long(), x.double()]


def test_integer_outputs():
    check(Program(mixed_dtypes, lambda: [leaf(4, 6)]))


def some_need_grad(x, y, z):
    return [x * y + z, y * y, (x * z).sum()]


@pytest.mark.parametrize("which", [(0,), (1,), (0, 2), (), (0, 1, 2)])
def test_requires_grad_on_some_inputs(which):
    def make():
        return [torch.randn(3, requires_grad=i in which) for i in range(3)]

    check(Program(some_need_grad, make))


# --- inputs and views as outputs ---


def input_and_views(x):
    return [x, x.t(), x[1], x.view(-1), x * 2, x.detach(), x.view_as(x)]


def middle(*leaves):
    return [tensor * 1 for tensor in leaves]


@pytest.mark.parametrize("inputs", [None, middle])
def test_outputs_that_are_inputs_or_views(inputs):
    check(Program(input_and_views, lambda: [leaf(4, 6)], inputs))


def views_of_output(x):
    y = x.sin()
    return [y, y.t(), y[1:, ::2], y.detach(), y.unsqueeze(0), y.expand(2, 4, 6)]


def test_outputs_that_are_views_of_outputs():
    check(Program(views_of_output, lambda: [leaf(4, 6)]))


def views_of_hidden(x):
    return list((x * 2).chunk(2))


def test_views_of_a_tensor_that_is_not_returned():
    check(Program(views_of_hidden, lambda: [leaf(4, 6)]))


def no_grad_outputs(x):
    y = x * 2
    with torch.no_grad():
        z = x * 3
        v = x.t()
    return [y, z, v, y.detach() + 1]


def test_no_grad_inside():
    check(Program(no_grad_outputs, lambda: [leaf(4, 6)]))


def complex_views(x):
    z = torch.view_as_complex(x)
    return [z, torch.view_as_real(z), z * 2]


def test_complex_views():
    check(Program(complex_views, lambda: [leaf(4, 2)]))


# --- mutated inputs ---


def write_all(x, y):
    x.add_(y, alpha=2)
    y[0].add_(1)
    return [x, (x + y).sin()]


def test_written_inputs_with_history():
    check(Program(write_all, lambda: [leaf(3, 4), leaf(3, 4)], middle))


def write_buffer(x, mean):
    with torch.no_grad():
        mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
    return [(x - mean).pow(2)]


def test_a_buffer_kept_up_to_date():
    check(Program(write_buffer, lambda: [leaf(5, 4), torch.zeros(4)]))


def write_makes_it_require_grad(x, buffer):
    buffer.add_(x)
    return [buffer * 2]


def test_a_plain_input_that_is_written_with_a_gradient():
    check(Program(write_makes_it_require_grad, lambda: [leaf(4), torch.ones(4)]))


def write_then_view(x):
    v = x[0]
    x.add_(1)
    v.mul_(2)
    return [v, x.t(), x.sum()]


@pytest.mark.parametrize("inputs", [middle, lambda x: [x.detach()], lambda x: [(x * 1)[1:]]])
def test_views_of_a_written_input(inputs):
    check(Program(write_then_view, lambda: [leaf(4, 6)], inputs))


def sgd(parameter, gradient):
    with torch.no_grad():
        parameter.sub_(gradient, alpha=0.1)
    return []


def test_update_of_a_leaf_under_no_grad():
    check(Program(sgd, lambda: [leaf(4), torch.randn(4)]))


def batch_norm(x, weight, bias, mean, var, count):
    count.add_(1)
    return [F.batch_norm(x, mean, var, weight, bias, training=True, momentum=0.1)]


def test_batch_norm_updates_its_buffers():
    def make():
        return [leaf(6, 3, 4, 4), leaf(3), leaf(3), torch.zeros(3), torch.ones(3), torch.tensor(0)]

    check(Program(batch_norm, make), exact=False)


def swap(a, b):
    t = a.clone()
    a.copy_(b)
    b.copy_(t)
    return []


def test_inputs_swap_their_values():
    check(Program(swap, lambda: [torch.randn(3), torch.randn(3)]))


# --- what the function does with autograd itself ---


class Cube(torch.autograd.Function):
    """x**3 with a gradient that is deliberately twice the right one."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 6 * x**2


def test_custom_function():
    check(Program(lambda x: [Cube.apply(x.sin()), Cube.apply(x)], lambda: [leaf(4)]))


def with_hook(x):
    y = x * 2
    y.register_hook(lambda g: g * 10)
    return [y.sin()]


def test_tensor_hook_inside():
    check(Program(with_hook, lambda: [leaf(4)]))


def checkpointed(x, w):
    def block(t):
        return F.dropout(torch.tanh(t @ w), 0.5)

    return [checkpoint(block, x, use_reentrant=False)]


def test_checkpoint():
    check(Program(checkpointed, lambda: [leaf(4, 4), leaf(4, 4)]))


def inner_grad(x, w):
    y = (x @ w).pow(2).sum()
    (g,) = torch.autograd.grad(y, [w])
    return [g, x * 2]


def test_autograd_grad_inside():
    check(Program(inner_grad, lambda: [leaf(4, 4), leaf(4, 4)]))


# --- modes ---


def test_autocast_inside():
    def function(x, w):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return [F.linear(x, w), x @ w.t()]

    check(Program(function, lambda: [leaf(4, 8), leaf(5, 8)]))


def test_inference_mode_around():
    program = Program(lambda x: [x * 2, x.t()], lambda: [torch.randn(4, 6)])
    with torch.inference_mode():
        check(program)


def test_inference_mode_inside():
    def function(x):
        with torch.inference_mode():
            y = x * 2
        return [y, x * 3]

    check(Program(function, lambda: [leaf(4)]))


# --- whole blocks ---


def attention_block(x, qkv, out, gain, bias):
    h = F.layer_norm(x, (16,), gain, bias)
    q, k, v = (h @ qkv).view(2, 8, 3, 4, 4).permute(2, 0, 3, 1, 4)
    a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return [x + F.gelu(a.transpose(1, 2).reshape(2, 8, 16) @ out)]


def attention_leaves():
    return [leaf(2, 8, 16), leaf(16, 48), leaf(16, 16), leaf(16), leaf(16)]


def test_attention_block():
    check(Program(attention_block, attention_leaves), exact=False)


def classifier(x, target, w1, w2):
    logits = F.dropout(F.relu(x @ w1), 0.25) @ w2
    return [F.cross_entropy(logits, target), logits]


@pytest.mark.parametrize("uses", [None, [0]])
def test_classifier_with_dropout(uses):
    def make():
        return [torch.randn(8, 6), torch.randint(0, 5, (8,)), leaf(6, 16), leaf(16, 5)]

    check(Program(classifier, make), uses=uses, exact=False)


def test_convolution_block():
    def function(x, w, b):
        return [F.max_pool2d(F.relu(F.conv2d(x, w, b, padding=1)), 2)]

    check(Program(function, lambda: [leaf(2, 3, 8, 8), leaf(4, 3, 3, 3), leaf(4)]), exact=False)


def test_lstm_cell():
    cell = nn.LSTMCell(4, 5)
    names = [name for name, _ in cell.named_parameters()]

    def function(x, h, c, *parameters):
        return list(torch.func.functional_call(cell, dict(zip(names, parameters)), (x, (h, c))))

    def make():
        return [leaf(3, 4), leaf(3, 5), leaf(3, 5), *(leaf(*p.shape) for p in cell.parameters())]

    check(Program(function, make), exact=False)


def test_symbolic_batch():
    def function(x, w):
        return [F.softmax(x @ w, -1).sum(0), x.view(-1, 2), x.shape[0] * x.mean()]

    check(Program(function, lambda: [leaf(8, 6), leaf(6, 5)]), symbolic=[[0], []], exact=False)
