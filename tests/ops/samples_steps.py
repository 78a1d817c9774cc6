"""Samples of _foreach_ operators, fused optimizer steps and recurrent layers."""

import torch
from making import F16, F64, I64
from rules import call
from samples import samples

UNARY = """abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt
    sigmoid sign sin sinh sqrt tan tanh trunc zero"""


def foreach(names, overload=""):
    return " ".join(f"_foreach_{name}{suffix}{overload}" for name in names.split() for suffix in ("", "_"))


def lists(make, dtype=torch.float32):
    yield [make(2, 3, dtype=dtype), make(dtype=dtype), make(4, dtype=dtype)]
    yield [make(3, 2, dtype=dtype).t(), make.last(2, 3, 4, 5, dtype=dtype)]


def like(make, tensors):
    return [make(*tensor.shape, dtype=tensor.dtype) for tensor in tensors]


@samples(foreach(UNARY))
def unary(make):
    yield from (call(tensors) for tensors in lists(make))
    yield call([make(2, dtype=F64), make(3, dtype=F16)])


@samples("_foreach_max")
def largest(make):
    yield from (call(tensors) for tensors in lists(make))


@samples("_foreach_norm.Scalar")
def norms(make):
    for tensors in lists(make):
        yield call(tensors)
        yield call(tensors, 1, dtype=F64)


ARITHMETIC = "add sub mul div clamp_min clamp_max maximum minimum"


@samples(foreach(ARITHMETIC, ".List"), "_foreach_pow.List _foreach_pow_.List _foreach_copy _foreach_copy_")
def pairs(make):
    for tensors in lists(make):
        yield call(tensors, like(make, tensors))


@samples(foreach("add sub", ".List"))
def pairs_with_alpha(make):
    for tensors in lists(make):
        yield call(tensors, like(make, tensors), alpha=0.5)


@samples(foreach(ARITHMETIC, ".Scalar"), "_foreach_pow.Scalar _foreach_pow_.Scalar")
def with_number(make):
    for tensors in lists(make):
        yield call(tensors, 2)
        yield call(tensors, 0.5)
    yield call([make(3, dtype=I64)], 2)


@samples(foreach(ARITHMETIC, ".ScalarList"), "_foreach_pow.ScalarList _foreach_pow_.ScalarList")
def with_numbers(make):
    for tensors in lists(make):
        yield call(tensors, [0.5 + i for i in range(len(tensors))])


@samples("_foreach_pow.ScalarAndTensor")
def number_to_powers(make):
    for tensors in lists(make):
        yield call(2.0, tensors, outside=make(1).is_cuda)


@samples(foreach("add mul div", ".Tensor"))
def with_tensor(make):
    for tensors in lists(make):
        yield call(tensors, make())


@samples(foreach("addcmul addcdiv", ".Scalar"), foreach("lerp", ".List"))
def triples(make):
    for tensors in lists(make):
        yield call(tensors, like(make, tensors), like(make, tensors))


@samples(foreach("addcmul addcdiv", ".ScalarList"))
def triples_with_numbers(make):
    for tensors in lists(make):
        yield call(tensors, like(make, tensors), like(make, tensors), [0.5] * len(tensors))


@samples(foreach("addcmul addcdiv", ".Tensor"))
def triples_with_tensor(make):
    for tensors in lists(make):
        yield call(tensors, like(make, tensors), like(make, tensors), torch.ones(len(tensors)))


@samples(foreach("lerp", ".Scalar"))
def lerp(make):
    for tensors in lists(make):
        yield call(tensors, like(make, tensors), 0.5)


@samples(foreach("lerp", ".ScalarList"))
def lerp_by_numbers(make):
    for tensors in lists(make):
        yield call(tensors, like(make, tensors), [0.5] * len(tensors))


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
