"""NVRTC takes the kernels of the corpus, in both variants. Needs the library, and no GPU."""

import pytest
from kernel_programs import PROGRAMS

runtime = pytest.importorskip("graphlift_runtime")
REFUSAL = runtime.nvrtc_refusal()
CPU, HOPPER, TURING = 0, 90, 75

pytestmark = pytest.mark.skipif(REFUSAL != "", reason=REFUSAL)


def texts(program, architecture):
    """Of its forward and its backward graph."""
    runner = runtime.record(lambda *args: list(program.function(*args)), program.make("cpu"), program.symbolic)
    graphs = [text for text in (runner.forward_text, runner.backward_text) if text]
    return [text for graph in graphs for text in runtime.cuda_texts(graph, CPU, architecture)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_programs_compile(program):
    found = texts(program, HOPPER)
    assert found and all(len(code) > 500 for code in runtime.nvrtc_compile(found, HOPPER))


def test_an_older_gpu():
    found = texts(PROGRAMS[0], TURING)
    assert all(code.startswith(b"\x7fELF") for code in runtime.nvrtc_compile(found, TURING))


def test_a_newer_gpu_than_the_compiler_knows_gets_ptx():
    (code,) = runtime.nvrtc_compile(texts(PROGRAMS[0], 999)[:1], 999)
    assert b".target" in code


def test_a_wrong_text_is_refused_with_the_compilers_words():
    with pytest.raises(Exception, match="error"):
        runtime.nvrtc_compile(["this is no program"], HOPPER)


def test_text_is_the_same_each_time():
    assert texts(PROGRAMS[3], HOPPER) == texts(PROGRAMS[3], HOPPER)
