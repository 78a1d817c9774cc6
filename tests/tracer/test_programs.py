"""Programs that mutate, view, make tensors and read data."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

tracer = pytest.importorskip("graphlift_tracer")
from recordings import check_against_eager, record  # noqa: E402


def tensor(*shape):
    """A tensor that requires grad."""
    return torch.randn(*shape, requires_grad=True)


def in_place_on_fresh(x):
    y = x * 2
    y.add_(1)
    y[0].mul_(3)
    y[:, 1:3] = 0.5
    z = y.t().contiguous()
    z.view(-1)[3:5].zero_()
    return z + torch.zeros(8, 4)


def views_see_writes(x):
    base = x.clone()
    row, column = base[1], base[:, 2]
    flat = base.view(-1)
    row.fill_(7.0)
    column.add_(1)
    return flat * 2, base.sum(), row + 1


def split_and_unbind(x):
    y = x.detach() + 0
    a, b = y.split([1, 3])
    a.mul_(2)
    first, *_ = y.unbind(1)
    first.add_(10)
    return y, b.sum()


def factories(x):
    z = torch.zeros(3)
    z += 1
    n = torch.arange(4, dtype=x.dtype, device=x.device)
    m = torch.full((4, 8), 2.0).triu(1)
    e = torch.empty_like(x).fill_(3.0)
    return x * n[:, None] + m + e + z.sum() + torch.ones_like(x) + x.new_zeros(8)


def constants(x):
    t = torch.tensor([1.0, 2.0, 3.0, 4.0])
    t[0] = 5.0
    s = torch.tensor(3.0)
    scale = torch.tensor(2).item()
    return x * t[:, None] + s * scale


def conditions(x):
    if x.shape[0] > 3 and x.dim() == 2 and x.requires_grad:
        return torch.where(x > 0, x, x.exp() - 1)
    return x


def detached(x):
    y = x.sin()
    return y * y.detach() + x.detach()


def no_grad_inside(x):
    with torch.no_grad():
        scale = x.abs().max()
    return x / scale, scale


def several_outputs(x):
    mean = x.mean(1, keepdim=True)
    return x - mean, mean, x.argmax(1), x > 0


def pow_and_norms(x):
    return x.pow(2).mean(-1, keepdim=True).rsqrt() * x + x.norm() + x.var(unbiased=False) + x.std(0)


def casts(x):
    return x.double().sum(), x.half().float() * 2, x.to(torch.bfloat16)


def indexing(x):
    index = torch.tensor([0, 2])
    y = x[index] + x[:2, None, 0]
    return y, x[..., ::2], F.pad(x, (1, 1)), torch.cat([x, x]), torch.stack([x, x * 2], 1)


def mask_write(x):
    y = x * 1
    y[y > 0] = 0.0
    return y.masked_fill(y < -1, -1.0)


def einsum_and_matmul(x):
    return torch.einsum("ij,kj->ik", x, x), x @ x.t(), torch.baddbmm(x[None], x[None], x.t()[None] @ x[None])


def softmax_and_losses(x):
    return (
        F.softmax(x, -1),
        F.log_softmax(x, 0),
        F.mse_loss(x, torch.zeros_like(x)),
        F.smooth_l1_loss(x, x.detach() + 1),
    )


def sorting(x):
    values, indices = x.sort(-1)
    top = x.topk(2, -1)
    return values, indices, top.values, x.cumsum(0), x.flip(0), x.roll(1, 0)


def numpy_style(x):
    return x.reshape(2, -1).permute(1, 0).squeeze().unsqueeze(0).expand(3, -1, -1).sum(0)


def foreach(x):
    parts = [x * 1, x * 2]
    torch._foreach_mul_(parts, 2.0)
    torch._foreach_add_(parts, [x, x])
    return parts


def out_argument(x):
    result = torch.empty(4, 8)
    with torch.no_grad():
        torch.mul(x, 2, out=result)
    return result


def sizes_as_numbers(x):
    n, m = x.shape
    return x * n, x * m**-0.5, x / (n * m), x + (n // 2), x.sum() * (n > 2), x.view(-1, m // 2) * float(m)


PROGRAMS = [
    sizes_as_numbers,
    in_place_on_fresh,
    views_see_writes,
    split_and_unbind,
    factories,
    constants,
    conditions,
    detached,
    no_grad_inside,
    several_outputs,
    pow_and_norms,
    casts,
    indexing,
    mask_write,
    einsum_and_matmul,
    softmax_and_losses,
    sorting,
    numpy_style,
    foreach,
    out_argument,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program(program):
    if program is einsum_and_matmul:
        return check_against_eager(program, tensor(8, 8), rtol=1e-4, atol=1e-5)
    return check_against_eager(program, tensor(4, 8), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p is not constants], ids=lambda p: p.__name__)
def test_program_symbolic(program):
    x = tensor(4, 8) if program is not einsum_and_matmul else tensor(8, 8)
    check_against_eager(
        program, x, symbolic={id(x): (0, 1)}, symbols={"s0": x.shape[0], "s1": x.shape[1]}, rtol=1e-4, atol=1e-5
    )


def test_mutated_input():
    x, y = torch.randn(4), tensor(4)
    recorded = check_against_eager(lambda x, y: (x.add_(1), x * y)[1], x, y)
    assert recorded.traced["inputs"][0]["mutated_data"]


def test_mutated_input_through_a_view():
    recorded = check_against_eager(lambda x: x[1:].mul_(2).sum(), torch.randn(4))
    assert recorded.traced["inputs"][0]["mutated_data"]


def test_buffer_of_a_module():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("steps", torch.zeros(()))

        def forward(self, x):
            self.steps += 1
            return x * self.steps

    check_against_eager(lambda m, x: m(x), Counter(), tensor(3))


def test_output_is_an_input():
    x = tensor(3)
    traced = record(lambda x: (x, x * 2), x).traced
    assert [plan["aliasing"] for plan in traced["outputs"]] == ["input", "fresh"]
    assert [plan["differentiable"] for plan in traced["outputs"]] == [False, True]


def test_output_is_a_view_of_an_input():
    traced = record(lambda x: (x[1:], x.detach()), tensor(3)).traced
    assert [plan["aliasing"] for plan in traced["outputs"]] == ["view_of_input"] * 2
    assert [plan["detached"] for plan in traced["outputs"]] == [False, True]
    assert [plan["requires_grad"] for plan in traced["outputs"]] == [True, False]


def test_output_is_a_view_of_an_output():
    def program(x):
        y = x * 2
        return y.t(), y

    traced = record(program, tensor(2, 3)).traced
    assert [plan["aliasing"] for plan in traced["outputs"]] == ["view_of_output", "fresh"]
    assert traced["outputs"][0]["of"] == 1
    assert traced["tangents"] == 1


def test_aliased_inputs_that_are_written_are_refused():
    base = torch.randn(4)
    traced = record(lambda a, b: a.add_(1) + b, base[:2], base[2:]).traced
    assert "shares memory" in traced["refuse"]


def test_write_to_a_leaf_is_refused_by_torch():
    with pytest.raises(RuntimeError, match="leaf Variable"):
        record(lambda x: x.add_(1), tensor(3))


def test_write_to_a_history_outside_is_allowed():
    x = tensor(3) * 2
    recorded = record(lambda x: x.mul_(3).sum(), x)
    assert recorded.traced["inputs"][0]["tangent"] >= 0
    assert recorded.traced["inputs"][0]["gradient"] >= 0


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.sum().item(),
        lambda x: bool(x.sum() > 0),
        lambda x: x.nonzero(),
        lambda x: x[x > 0],
        lambda x: torch.unique(x),
        lambda x: torch.equal(x, x),
        lambda x: int(x.sum()),
        lambda x: x.masked_select(x > 0),
        lambda x: torch.allclose(x, x),
    ],
)
def test_data_dependent_programs_break(program):
    with pytest.raises(tracer.Break):
        record(program, torch.randn(4))


@pytest.mark.parametrize("read", [lambda x: x.tolist(), lambda x: x.numpy(), lambda x: x.data_ptr()])
def test_data_is_never_read(read):
    with pytest.raises((tracer.Break, RuntimeError)):
        record(read, torch.randn(4))


def test_shape_errors_are_torchs_own():
    x = torch.randn(2, 3)
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        record(lambda x: x @ x, x)
    with pytest.raises(RuntimeError, match="must match the size"):
        record(lambda x: x + torch.zeros(4), x)


def test_in_place_errors_are_torchs_own():
    with pytest.raises(RuntimeError, match="can't be cast"):
        record(lambda x: x.add_(0.5), torch.arange(3))
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        record(lambda x: x.add_(torch.zeros(2, 3)), torch.randn(3))


class Square(torch.autograd.Function):
    """A custom function whose backward is Python."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 3 * x  # not the true derivative, to be recognized


def test_custom_function():
    check_against_eager(lambda x: Square.apply(x) + x, tensor(4))


def test_tensor_hook():
    def program(x):
        y = x * 2
        y.register_hook(lambda gradient: gradient * 5)
        return y.sin()

    check_against_eager(program, tensor(4))


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint(reentrant):
    from torch.utils.checkpoint import checkpoint

    def program(x, w):
        return checkpoint(lambda x: (x @ w).tanh(), x, use_reentrant=reentrant, preserve_rng_state=False)

    recorded = check_against_eager(program, tensor(3, 4), tensor(4, 4) if not reentrant else torch.randn(4, 4))
    if not reentrant:
        assert any(node["recompute"] for node in recorded.traced["nodes"])


def test_backward_inside():
    model = nn.Linear(4, 2)
    x = torch.randn(3, 4)

    def program(model, x):
        loss = model(x).pow(2).mean()
        loss.backward()
        return loss, model.weight.grad, model.bias.grad

    traced = record(program, model, x).traced
    assert traced["outputs"][0]["requires_grad"] and not traced["outputs"][0]["differentiable"]
    assert traced["tangents"] == 0


def test_random_calls_follow_the_generator():
    def program(x):
        return x + torch.rand(4) + torch.randn_like(x) + torch.empty(4).uniform_(0, 1), torch.randint(0, 9, (3,))

    check_against_eager(program, torch.randn(4), seed=5)


def test_a_generator_is_named():
    generator = torch.Generator()
    recorded = record(lambda x: x + torch.rand(4, generator=generator), torch.randn(4))
    assert 'aten::rand.generator([4], "graphlift generator ' in recorded.traced["text"]


def test_inference_mode():
    with torch.inference_mode():
        x = torch.randn(3, 4)
        recorded = check_against_eager(lambda x: F.linear(x, x).relu(), x)
    assert recorded.traced["outputs"][0]["inference"]


def test_parameter_made_inside():
    traced = record(lambda x: nn.Parameter(x * 2), torch.randn(3)).traced
    assert traced["outputs"][0]["as_parameter"] and traced["outputs"][0]["requires_grad"]
