"""install() and `python -m graphlift`: unmodified programs are compiled by graphlift, without torch._dynamo."""

import os
import pickle
import subprocess
import sys

import pytest
import torch

import graphlift

PROGRAM = """
import sys
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        return x * 2

@torch.compile(options={{"triton.cudagraphs": True}}, fullgraph=True)
def f(x):
    return x + 1

if __name__ == "__main__":
    import pickle
    print("argv", sys.argv[1:], "package", f.__class__.__module__)
    net = Net()
    net.compile(mode="reduce-overhead")
    other = torch.compile(Net(), backend="aot_eager")
    print(*(g(torch.ones(1)).item() for g in (f, net, other)))
    import graphlift

    print("regions", graphlift.graph_count())
    assert pickle.loads(pickle.dumps(f)) is f and isinstance(pickle.loads(pickle.dumps(net)), Net)
    torch.compiler.reset()
    for name in ("torch._dynamo", "torch._inductor", "sympy"):
        assert name not in sys.modules, name
    sys.exit(7)
"""


@pytest.fixture
def installed():
    originals = torch.compile, torch.nn.Module.compile, torch.compiler.reset
    graphlift.install()
    graphlift.install()
    yield
    graphlift.uninstall()
    assert (torch.compile, torch.nn.Module.compile, torch.compiler.reset) == originals


def test_torch_compile(installed):
    def f(x):
        return x + 1

    for arguments in ({}, {"backend": "inductor"}, {"mode": "max-autotune", "dynamic": True}, {"recompile_limit": 3}):
        graphlift.reset()
        assert torch.compile(f, **arguments).__wrapped__ is f
        assert torch.compile(**arguments)(f)(torch.ones(1)).item() == 2
        assert graphlift.graph_count() == 1
    assert torch.compile(f, disable=True) is f
    with pytest.raises(ValueError, match="valid modes"):
        torch.compile(f, mode="fastest")


def test_module_compile_is_in_place(installed):
    net = torch.nn.Linear(2, 2)
    want = net(torch.ones(1, 2))
    graphlift.reset()
    assert net.compile(fullgraph=True) is None
    torch.testing.assert_close(net(torch.ones(1, 2)), want)
    assert graphlift.graph_count() == 1
    assert list(net.state_dict()) == ["weight", "bias"] and not list(net.children())
    handle = net.register_forward_hook(lambda m, args, out: out * 0 if m is net else out)
    assert net(torch.ones(1, 2)).abs().sum() == 0
    handle.remove()
    torch.testing.assert_close(graphlift.compile(net)(torch.ones(1, 2)), want)
    torch.testing.assert_close(pickle.loads(pickle.dumps(net))(torch.ones(1, 2)), want)
    net.compile(disable=True)
    assert net._compiled_call_impl is None


def test_the_programs_own_backend_is_torchs_business(installed, monkeypatch):
    seen = []
    redirect = sys.modules["graphlift.redirect"]
    monkeypatch.setitem(redirect._saved, (torch, "compile"), lambda model, **arguments: seen.append(arguments) or model)

    def backend(gm, inputs):
        return gm.forward

    torch.compile(abs, backend=backend)
    torch.compile(abs, backend="registered_elsewhere")
    torch.nn.Linear(1, 1).compile(backend=backend)
    assert [arguments["backend"] for arguments in seen] == [backend, "registered_elsewhere", backend]
    monkeypatch.undo()


def run(*arguments, cwd=None):
    """python -m graphlift, with graphlift._C or the double."""
    here = os.path.dirname(__file__)
    boot = (
        f"import sys; sys.path[:0] = [{here!r}]; import build_folder, native_choice; del sys.path[:1]\n"
        "sys.path.insert(0, '')\n"
        "from graphlift.__main__ import main; main(sys.argv[1:])"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(
        [sys.executable, "-c", boot, *arguments], cwd=cwd, env=environment, capture_output=True, text=True
    )


def test_script_and_module(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM.format())
    for arguments in ([str(tmp_path / "program.py")], ["-m", "program"]):
        done = run(*arguments, "-v", "--n=1", cwd=tmp_path)
        assert done.returncode == 7, done.stderr
        assert done.stdout.split("\n")[0].startswith("argv ['-v', '--n=1']")
        assert done.stdout.split("\n")[1:3] == ["2.0 2.0 2.0", "regions 3"], done.stdout


def test_usage_and_missing_script():
    assert run("--help").stdout.startswith("usage:")
    assert run().returncode == 2
    assert "FileNotFoundError" in run("no_such_file.py").stderr
