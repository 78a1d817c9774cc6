"""How torch's CUDA kernels draw random numbers, thread by thread, in plain Python: the oracle where there is no GPU.

Must not be fast, or share code with what it checks.
"""

import struct

BLOCK = 256
UNROLL = 4


def philox(counter, key):
    """Four 32-bit numbers: Philox 4x32 with 10 rounds."""
    c, k = list(counter), list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [
            (second >> 32) ^ c[1] ^ k[0],
            second & 0xFFFFFFFF,
            (first >> 32) ^ c[3] ^ k[1],
            first & 0xFFFFFFFF,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def single(number):
    """Rounded to float32."""
    return struct.unpack("f", struct.pack("f", number))[0]


class Generator:
    """A thread's cuRAND state behind curand_init(seed, thread, offset); offsets are multiples of 4."""

    def __init__(self, seed, thread, offset):
        self.seed, self.thread, self.count = seed, thread, offset // 4

    def uniform4(self):
        counter = [self.count & 0xFFFFFFFF, self.count >> 32, self.thread & 0xFFFFFFFF, self.thread >> 32]
        drawn = philox(counter, [self.seed & 0xFFFFFFFF, self.seed >> 32])
        self.count += 1
        # x is rounded to float32 first; the product and the sum are exact in double, and rounded once.
        return [single(single(x) * 2.0**-32 + 2.0**-33) for x in drawn]


def blocks(elements, processors, processor_threads=2048):
    return min(processors * (processor_threads // BLOCK), (elements + BLOCK - 1) // BLOCK)


def increment(elements, processors):
    """By how much a kernel moves the generator's offset."""
    return ((elements - 1) // (BLOCK * blocks(elements, processors) * UNROLL) + 1) * UNROLL


def in_vectors(seed, offset, elements, vector, processors):
    """What fused_dropout_kernel_vec draws for each element."""
    threads = blocks(elements, processors) * BLOCK
    drawn = [None] * elements
    for thread in range(threads):
        generator = Generator(seed, thread, offset)
        for first in range(thread * vector, elements, threads * vector):
            numbers = [number for _ in range((vector + 3) // 4) for number in generator.uniform4()]
            drawn[first : first + vector] = numbers[:vector]
    return drawn


def in_strides(seed, offset, elements, processors):
    """What fused_dropout_kernel, and kernels of distributions, draw for each element."""
    threads = blocks(elements, processors) * BLOCK
    drawn = [None] * elements
    for thread in range(threads):
        generator = Generator(seed, thread, offset)
        for first in range(thread, elements, threads * UNROLL):
            for i, number in enumerate(generator.uniform4()):
                if first + i * threads < elements:
                    drawn[first + i * threads] = number
    return drawn


def draws(seed, offset, elements, vector, processors):
    while elements % vector:
        vector //= 2
    if vector == 1:
        return in_strides(seed, offset, elements, processors)
    return in_vectors(seed, offset, elements, vector, processors)
