"""Runs an unmodified program compiled: `python -m graphlift script.py args...`, or `-m module args...` for a module.

torch.compile and nn.Module.compile mean graphlift in it; nothing else changes.
"""

import io
import os
import runpy
import sys
import types

from .redirect import install

USAGE = "usage: python -m graphlift [-m module | script.py] [arguments...]"


def main(arguments: list[str]) -> None:
    """Runs the program in place of this one."""
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print(USAGE, file=sys.stdout if arguments and arguments != ["-m"] else sys.stderr)
        raise SystemExit(0 if arguments and arguments != ["-m"] else 2)
    install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    script = arguments[0]
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    with io.open_code(os.path.abspath(script)) as file:
        code = compile(file.read(), script, "exec", dont_inherit=True)
    # A real __main__, so that what the script defines can be pickled.
    program = types.ModuleType("__main__")
    program.__file__ = script
    sys.modules["__main__"] = program
    exec(code, program.__dict__)


if __name__ == "__main__":
    main(sys.argv[1:])
