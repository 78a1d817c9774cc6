"""Every operator that real programs dispatch, forward, backward and optimizer steps: a row answers, and as eager does."""

import pytest
import torch
import torch.nn.functional as F
from checking import NAMES, show
from rules import Call, answer_of, infer
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

# Data-dependent, or no operator on tensors.
WITHOUT_ROW = {"aten::_local_scalar_dense.default"}


class Watch(TorchDispatchMode):
    """Asks the rule before each call and compares afterwards."""

    def __init__(self):
        super().__init__()
        self.seen, self.wrong, self.unanswered = set(), [], set()

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        sample = Call(args, kwargs or {})
        name = f"{operator._schema.name}.{operator._schema.overload_name or 'default'}"
        if not name.startswith("aten::"):
            return operator(*args, **sample.kwargs)
        if name.startswith("aten::_foreach_"):  # recorded item by item, through torch's own composition
            with self:
                return operator._op_dk(torch._C.DispatchKey.CompositeExplicitAutograd, *args, **sample.kwargs)
        self.seen.add(name)
        shown = show(sample)
        answers = [infer(name, sample, mode) for mode in ("constant", "duck")] if name in NAMES else []
        result = operator(*args, **sample.kwargs)
        truth = answer_of(name, operator._schema, result) if answers else None
        for answer, env in answers:
            if answer is not None and (answer != truth or not env.guards_hold()):
                self.wrong.append(f"{name} {shown}: {answer}; eager gives {truth}")
        if not answers or answers[0][0] is None:
            self.unanswered.add(name)
        return result


def step(module, args, optimizer=None, autocast=False):
    with Watch() as watch:
        for _ in range(2):
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                output = module(*args)
            output = output if isinstance(output, torch.Tensor) else output[0]
            output.float().pow(2).mean().backward()
            if optimizer:
                optimizer.step()
                optimizer.zero_grad()
        module.eval()
        with torch.no_grad():
            module(*args)
    assert watch.wrong == []
    assert watch.unanswered - WITHOUT_ROW == set()
    return watch.seen


def convolutional():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=8, padding=1),
        nn.GroupNorm(2, 8),
        nn.SiLU(),
        nn.AvgPool2d(2),
        nn.Dropout(0.1),
        nn.ConvTranspose2d(8, 4, 2, stride=2),
        nn.Upsample(scale_factor=2),
        nn.InstanceNorm2d(4, affine=True),
        nn.Hardswish(),
        nn.AdaptiveAvgPool2d(3),
        nn.Flatten(),
        nn.Linear(36, 7),
        nn.LogSoftmax(-1),
    )


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("form", [torch.contiguous_format, torch.channels_last])
def test_convolutional(autocast, form):
    torch.manual_seed(0)
    module = convolutional().to(memory_format=form)
    image = torch.randn(2, 3, 16, 16).to(memory_format=form)
    step(module, (image,), torch.optim.SGD(module.parameters(), 0.1, momentum=0.9), autocast)


@pytest.mark.parametrize("autocast", [False, True])
def test_transformer(autocast):
    torch.manual_seed(0)
    module = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), 2)
    seen = step(module, (torch.randn(2, 5, 16),), torch.optim.AdamW(module.parameters()), autocast)
    assert "aten::_scaled_dot_product_flash_attention_for_cpu_backward.default" in seen


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent(layer):
    torch.manual_seed(0)
    step(layer(16, 8, 2, batch_first=True, bidirectional=True), (torch.randn(2, 5, 16),))


OPTIMIZERS = ("Adam", "AdamW", "SGD", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax", "Rprop")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer(name):
    torch.manual_seed(0)
    module = nn.Linear(4, 3)
    seen = step(module, (torch.randn(2, 4),), getattr(torch.optim, name)(module.parameters(), lr=0.1, foreach=True))
    assert not any("_foreach_" in name for name in seen) and len(seen) > 10


class Various(nn.Module):
    def forward(self, x):
        scores = torch.einsum("bij,bkj->bik", x, x)
        scores = scores.masked_fill(torch.ones(5, 5, dtype=torch.bool).triu(1), -1e9).softmax(-1)
        w = torch.stack([x, x * 2]).mean(0)
        w[:, 0] = 1.0
        w[:, 1:3, ::2] += 2
        w = w.clamp(-1, 1) ** 2 + torch.where(x > 0, x, 0.0)
        first, second = w.chunk(2, -1)
        turned = torch.cat([-second, first], -1)
        picked = turned[:, torch.tensor([0, 2])].sum() + turned.gather(1, torch.zeros(2, 1, 16, dtype=torch.long)).sum()
        ranked = (
            turned.topk(2)[0].sum()
            + turned.sort(1)[0].sum()
            + turned.max(1)[0].sum()
            + torch.logsumexp(turned, 1).sum()
        )
        losses = F.binary_cross_entropy_with_logits(x, (x > 0).float()) + F.huber_loss(x, w) + torch.cdist(x, w).sum()
        losses = losses + F.cross_entropy(x.reshape(-1, 16), torch.zeros(10, dtype=torch.long), label_smoothing=0.1)
        moved = torch.roll(x, 1, 1).flip(2).tril().repeat(2, 1, 1).repeat_interleave(2, 0).sum()
        gates = F.glu(x) + F.gelu(second) + F.mish(second) + F.elu(second) + F.softplus(second) + F.logsigmoid(second)
        sampled = F.interpolate(x[:, None], scale_factor=2.0, mode="bicubic").sum()
        sampled = sampled + F.grid_sample(x[:, None], torch.rand(2, 3, 3, 2), align_corners=False).sum()
        padded = F.pad(turned, (1, 2)).unfold(1, 3, 1).sum() + torch.cumsum(turned, 1).std() + turned.var(0).sum()
        normed = (
            F.normalize(turned, dim=-1).sum() + F.layer_norm(turned, (16,)).norm() + F.rms_norm(turned, (16,)).sum()
        )
        return scores.sum() + picked + ranked + losses + moved + gates.sum() + sampled + padded + normed


@pytest.mark.parametrize("autocast", [False, True])
def test_various(autocast):
    torch.manual_seed(0)
    step(Various(), (torch.randn(2, 5, 16, requires_grad=True),), autocast=autocast)
