"""Samples of fused optimizer steps and recurrent layers."""

import torch
from rules import call
from samples import samples


def like(make, tensors):
    return [make(*tensor.shape, dtype=tensor.dtype) for tensor in tensors]


def adam(make, lr):
    tensors = [make(2, 3), make(4)]
    return call(
        tensors,
        like(make, tensors),
        like(make, tensors),
        like(make, tensors),
        [],
        [make(), make()],
        lr=lr,
        beta1=0.9,
        beta2=0.99,
        weight_decay=0.0,
        eps=1e-8,
        amsgrad=False,
        maximize=False,
    )


@samples("_fused_adam _fused_adamw _fused_adam_ _fused_adamw_")
def fused_adam(make):
    yield adam(make, 0.1)


@samples("_fused_adam.tensor_lr _fused_adamw.tensor_lr _fused_adam_.tensor_lr _fused_adamw_.tensor_lr")
def fused_adam_by_tensor(make):
    yield adam(make, make())


def sgd(make, lr):
    tensors = [make(2, 3), make(4)]
    return call(
        tensors,
        like(make, tensors),
        like(make, tensors),
        weight_decay=0.0,
        momentum=0.9,
        lr=lr,
        dampening=0.0,
        nesterov=False,
        maximize=False,
        is_first_step=False,
    )


@samples("_fused_sgd _fused_sgd_")
def fused_sgd(make):
    yield sgd(make, 0.1)


@samples("_fused_sgd.tensor_lr _fused_sgd_.tensor_lr")
def fused_sgd_by_tensor(make):
    yield sgd(make, make())


@samples("_amp_foreach_non_finite_check_and_unscale _amp_foreach_non_finite_check_and_unscale_")
def unscale(make):
    yield call([make(2, 3), make(4)], make(1), make(1))


@samples("_amp_update_scale _amp_update_scale_")
def update_scale(make):
    yield call(make(1), make(1, dtype=torch.int32), make(1), 2.0, 0.5, 100)


@samples("_assert_async")
def check(make):
    yield call(make() > 0)


@samples("_assert_async.msg")
def check_with_words(make):
    yield call(make() > 0, "words")


@samples("_assert_tensor_metadata")
def check_metadata(make):
    yield call(make(2, 3), [2, 3], [3, 1], torch.float32)


def lstm_arguments(make, reverse=False, batch_first=False):
    return [
        make(5, 2, 4),
        make(24, 4),
        make(24, 6),
        make(24),
        make(24),
        make(2, 6),
        make(2, 6),
        reverse,
        [],
        2,
        6,
        1,
        True,
        False,
        batch_first,
        True,
    ]


@samples("mkldnn_rnn_layer")
def mkldnn_layer(make):
    yield call(*lstm_arguments(make))
    yield call(*lstm_arguments(make, reverse=True))
    yield call(*lstm_arguments(make)[:-1], False)
    args = lstm_arguments(make)
    args[5], args[6] = make(1, 2, 6), make(1, 2, 6)
    yield call(*args)


@samples("mkldnn_rnn_layer_backward")
def mkldnn_layer_backward(make):
    if make.device != "cpu":
        return
    args = lstm_arguments(make)
    output, hy, cy, workspace = torch.ops.aten.mkldnn_rnn_layer(*args)
    yield call(*args[:7], output, hy, cy, output, hy, cy, False, 2, 6, 1, True, True, False, [], False, workspace)


@samples("_thnn_fused_lstm_cell")
def lstm_cell(make):
    yield call(make(2, 24), make(2, 24), make(2, 6), make(24), make(24), outside=not make(1).is_cuda)


@samples("_cudnn_rnn")
def cudnn_layers(make):
    if make(1).is_cuda:
        for batch_first in (False, True):
            layer = torch.nn.LSTM(4, 6, 2, batch_first=batch_first, bidirectional=True).cuda()
            weights = [w for group in layer.all_weights for w in group]
            first = layer._flat_weights[0].detach()
            flat = first.as_strided((first.untyped_storage().nbytes() // 4,), (1,), 0)
            yield call(
                make(5, 3, 4),
                weights,
                4,
                flat,
                make(4, 5 if batch_first else 3, 6),
                make(4, 5 if batch_first else 3, 6),
                2,
                6,
                0,
                2,
                batch_first,
                0.0,
                True,
                True,
                [],
                None,
            )
