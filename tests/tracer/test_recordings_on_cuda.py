"""The same recordings for tensors on a GPU, whose kernels, layouts and choices differ."""

import pytest
import torch
from torch import nn

import graphlift

pytest.importorskip("graphlift_tracer")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

from recordings import check_against_eager  # noqa: E402
from test_programs import PROGRAMS, constants, einsum_and_matmul  # noqa: E402
from test_recorded_modules import Gpt, call  # noqa: E402


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("symbolic", [False, True])
def test_program(program, symbolic):
    if symbolic and program is constants:
        return
    with torch.device("cuda"):
        size = 8 if program is einsum_and_matmul else 4
        x = torch.randn(size, 8, requires_grad=True)
        names = {"symbolic": {id(x): (0, 1)}, "symbols": {"s0": size, "s1": 8}} if symbolic else {}
        check_against_eager(program, x, rtol=1e-3, atol=1e-4, **names)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_gpt(dtype):
    tolerance = 1e-3 if dtype == torch.float32 else 5e-2
    model = Gpt().to("cuda", dtype)
    recorded = check_against_eager(
        call, model, torch.randint(0, 64, (2, 12), device="cuda"), rtol=tolerance, atol=tolerance
    )
    attention = [op for op in recorded.ops if "attention" in op]
    assert attention, recorded.ops


def test_autocast():
    model = Gpt().cuda()

    def step(model, idx):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return model(idx)

    check_against_eager(step, model, torch.randint(0, 64, (2, 12), device="cuda"), rtol=5e-2, atol=5e-2)


@pytest.mark.parametrize("channels_last", [False, True])
def test_conv_batch_norm(channels_last):
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)).cuda()
    x = torch.randn(2, 3, 8, 8, device="cuda")
    if channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    recorded = check_against_eager(call, model, x, rtol=1e-2, atol=1e-2)
    assert sum(plan["mutated_data"] for plan in recorded.traced["inputs"]) == 3


def test_lstm():
    """cuDNN asks where its weights lie in memory: a break, as for torch.compile, and right."""
    lstm = nn.LSTM(4, 6, num_layers=2).cuda()
    compiled = graphlift.compile(lambda x: lstm(x * 2)[0] + 1)
    for _ in range(3):
        x = torch.randn(5, 3, 4, device="cuda")
        torch.testing.assert_close(compiled(x), lstm(x * 2)[0] + 1, rtol=1e-2, atol=1e-2)
    assert graphlift.counters()["graph_break"]


def test_dropout():
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 2)).cuda()
    check_against_eager(call, model, torch.randn(4, 8, device="cuda"), seed=3, rtol=1e-3, atol=1e-3)


def test_optimizer_step():
    def program(w, g, m, v, step):
        with torch.no_grad():
            torch._fused_adamw_(
                [w],
                [g],
                [m],
                [v],
                [],
                [step],
                lr=0.1,
                beta1=0.9,
                beta2=0.99,
                weight_decay=0.0,
                eps=1e-8,
                amsgrad=False,
                maximize=False,
            )
        return w * 1

    tensors = [torch.rand(4, device="cuda") for _ in range(4)]
    check_against_eager(program, *tensors, torch.ones((), device="cuda"), rtol=1e-3, atol=1e-3)
