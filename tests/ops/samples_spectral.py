"""Samples of discrete Fourier transforms."""

from making import C64, C128, F64
from rules import call
from samples import samples


@samples("_fft_c2c")
def complex_to_complex(make):
    yield call(make(2, 6, 5, dtype=C64), [1, 2], 0, True)
    yield call(make(4, 6, dtype=C128), [1], 2, False)
    yield call(make(2, 3, 4, 5, dtype=C64), [1, 2, 3], 1, True)
    yield call(make(3, 4, dtype=C64), [0], 0, True, outside=True)  # not the last dimension
    yield call(make(6, 4, dtype=C64).t(), [1], 0, True, outside=True)
    yield call(make(3, 1, 4, dtype=C64), [1, 2], 0, True, outside=True)


@samples("_fft_r2c")
def real_to_complex(make):
    for onesided in (True, False):
        yield call(make(3, 8), [1], 0, onesided)
        yield call(make(2, 3, 7, dtype=F64), [2], 1, onesided)
        yield call(make(2, 3, 6), [1, 2], 0, onesided, outside=True)


@samples("_fft_c2r")
def complex_to_real(make):
    yield call(make(3, 5, dtype=C64), [1], 0, 8)
    yield call(make(2, 3, 5, dtype=C128), [2], 1, 9)
    yield call(make(2, 6, 5, dtype=C64), [1, 2], 0, 8, outside=True)
