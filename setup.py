"""Builds graphlift._C with CMake and Ninja, for pip. What the package is stands in pyproject.toml.

GRAPHLIFT_BUILD_TESTS=1 builds test programs and test modules too, GRAPHLIFT_JOBS=n sets how many compilers run at once,
GRAPHLIFT_CMAKE_ARGS is handed to CMake, GRAPHLIFT_BUILD names the build folder.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
GIB = 2**30


def find_tool(name):
    """The program `name` of this interpreter's environment, else of PATH."""
    places = [os.path.dirname(sys.executable), os.path.join(sys.prefix, "bin"), os.environ.get("PATH", "")]
    found = shutil.which(name, path=os.pathsep.join(places))
    if found is None:
        raise SystemExit(f"{name} is needed to build graphlift: pip install {name}")
    return found


def job_count():
    """One compiler per core, as far as memory goes: a file that includes torch takes about 1.5 GiB."""
    if os.environ.get("GRAPHLIFT_JOBS"):
        return int(os.environ["GRAPHLIFT_JOBS"])
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(len(os.sched_getaffinity(0)), memory // (3 * GIB // 2)))


class CMakeBuild(build_ext):
    """Configures, builds, and puts the extension module where setuptools wants it."""

    def build_extension(self, extension):
        """Builds the one extension there is."""
        tag = sys.implementation.cache_tag
        build = Path(os.environ.get("GRAPHLIFT_BUILD") or ROOT / "build" / tag)
        tests = "ON" if os.environ.get("GRAPHLIFT_BUILD_TESTS", "0") not in ("", "0") else "OFF"
        configure = [find_tool("cmake"), "-G", "Ninja", "-S", str(ROOT), "-B", str(build)]
        configure += [f"-DCMAKE_MAKE_PROGRAM={find_tool('ninja')}", f"-DPython_EXECUTABLE={sys.executable}"]
        configure += [
            f"-DGRAPHLIFT_BUILD_TESTS={tests}",
            "-DCMAKE_UNITY_BUILD=ON",
            *shlex.split(os.environ.get("GRAPHLIFT_CMAKE_ARGS", "")),
        ]
        subprocess.run(configure, check=True)
        subprocess.run([configure[0], "--build", str(build), "--parallel", str(job_count())], check=True)
        target = Path(self.get_ext_fullpath(extension.name)).resolve()
        built = build / "modules" / target.name
        if not built.exists():
            raise SystemExit(f"the build made no {target.name}")
        target.parent.mkdir(parents=True, exist_ok=True)
        # Replaced, not overwritten: a running process may have the old one mapped.
        fresh = target.with_name(target.name + ".new")
        shutil.copy2(built, fresh)
        os.replace(fresh, target)


setup(ext_modules=[Extension("graphlift._C", sources=[])], cmdclass={"build_ext": CMakeBuild})
