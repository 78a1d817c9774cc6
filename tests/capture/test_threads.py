"""Several threads call compiled functions at once, first calls included. A new process each: what a process makes once
(tables, the kernel compiler, oneDNN) is made by threads that meet there."""

import os
import subprocess
import sys
import textwrap

import pytest


def run(program, seconds=300):
    """The program's output; it hangs when threads wait for each other."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    program = "import build_folder\n" + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FIRST_CALLS = """
    import copy, sys, threading
    import torch, graphlift

    torch.set_num_threads(1)
    sys.setswitchinterval(1e-5)
    net = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.LayerNorm(5), torch.nn.Linear(5, 2))
    shared = graphlift.compile(net, backend={backend!r})
    gate, bad = threading.Barrier(6), []

    def work(k):
        try:
            own = graphlift.compile(lambda x: net(x).softmax(-1) * k, backend={backend!r})
            gate.wait()
            for step in range(4):
                x = torch.full((k + 1, 3), float(step), requires_grad=True)
                with torch.set_grad_enabled(k % 2 == 0):
                    got, want = (shared(x), own(x)), (net(x), net(x).softmax(-1) * k)
                torch.testing.assert_close(got, want)
                assert got[0].requires_grad == (k % 2 == 0)
                if k % 2 == 0:
                    grads = [torch.autograd.grad(sum(y.square().sum() for y in ys), x) for ys in (got, want)]
                    torch.testing.assert_close(*grads)
        except BaseException as error:
            bad.append(f"thread {{k}}: {{type(error).__name__}}: {{error}}")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert not bad, bad
    assert graphlift.graph_count() >= 7, graphlift.graph_count()
    print("done")
"""


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_first_calls_of_a_process_on_six_threads(backend):
    assert run(FIRST_CALLS.format(backend=backend)) == "done\n"


VARYING = """
    import threading, warnings
    import torch, graphlift

    warnings.simplefilter("error", graphlift.GraphliftWarning)
    torch.set_num_threads(1)
    functions = [lambda x, i=i: (x * i).sin().sum() + i for i in range(8)]
    compiled = [graphlift.compile(function) for function in functions]
    product = lambda x: (x @ x.t()).relu().sum()
    shared, gate, bad = graphlift.compile(product), threading.Barrier(8), []

    def work(k):
        try:
            gate.wait()
            for step in range(40):
                x = torch.full((3 + (step + k) % 5, 4), 0.1 * k)
                torch.testing.assert_close(compiled[k](x), functions[k](x))
                torch.testing.assert_close(shared(x), product(x))
                leaf = x.clone().requires_grad_()
                compiled[(k + step) % 8](leaf).backward()
        except BaseException as error:
            bad.append(f"thread {k}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert not bad, bad
    assert graphlift.graph_count() >= 9, graphlift.graph_count()
    print("done")
"""


def test_eight_threads_with_sizes_that_vary():
    """Threads that capture one function at once don't use its regions up: one that came too late takes another's."""
    assert run(VARYING) == "done\n"
