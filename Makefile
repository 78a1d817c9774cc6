# make demo    environment, build, then examples/train_mlp.py
# make test    build, C++ tests, Python tests, style, and the interpreter's layers on other CPythons that are there
#
# make asan    the C++ tests and a capture with backward under AddressSanitizer (GCC)
# make valgrind  captures and the C++ tests that need torch under valgrind's memcheck, on the usual build
#
# PYTHON: the interpreter (3.11 or 3.12). VENV: the environment, made when missing; one that has torch keeps it.
# WORKERS: processes that run Python tests, one per core by default.
# TORCH: what pip is asked for when the environment has none, for instance TORCH='torch==2.12.0'.

VENV ?= .venv
WORKERS ?= auto
TORCH ?= torch==2.13.0
ONEDNN = onednn-devel-cpu-gomp==2023.2.0
PYTHON ?= $(shell for p in python3 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' 2>/dev/null && echo $$p && break; done)
RUN = $(VENV)/bin/python
CPP = $(shell git ls-files 'csrc/*.cpp' 'csrc/*.h' 'backends/*.cpp' 'backends/*.h' 'tests/cpp/*.cpp' 'tests/cpp/*.h' 'cmake/*.h')

.PHONY: demo test asan valgrind build build-tests environment test-tools gtest ctest pytest lint format other-pythons clean

demo: build
	$(RUN) examples/train_mlp.py

test:
	$(MAKE) lint
	$(MAKE) build-tests
	$(MAKE) ctest
	$(MAKE) pytest
	$(MAKE) other-pythons

$(RUN):
	@test -n "$(PYTHON)" || { echo "no CPython 3.11 or 3.12 found: make PYTHON=/path/to/python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

environment: $(RUN)
	@$(RUN) -c 'import torch' 2>/dev/null || $(RUN) -m pip install -q '$(TORCH)'
	@$(RUN) -c 'import cmake, ninja, pybind11, setuptools, wheel, numpy' 2>/dev/null || \
		$(RUN) -m pip install -q 'setuptools>=70.1' wheel 'cmake>=3.20' ninja 'pybind11>=2.13' numpy
	@$(RUN) -c 'import llvmlite, platformdirs' 2>/dev/null || $(RUN) -m pip install -q 'llvmlite>=0.50,<0.51' 'platformdirs>=4'
	@$(RUN) -c 'import importlib.metadata as m; m.version("onednn-devel-cpu-gomp")' 2>/dev/null || \
		$(RUN) -m pip install -q '$(ONEDNN)' || echo "no oneDNN for this machine: torch's kernels are used"

test-tools: environment
	@$(RUN) -c 'import pytest, pytest_timeout, xdist, hypothesis, PIL, ruff, clang_format' 2>/dev/null || \
		$(RUN) -m pip install -q 'pytest>=8' pytest-timeout pytest-xdist hypothesis pillow 'ruff>=0.17,<0.18' 'clang-format>=23,<24'

build: environment
	$(RUN) -m pip install -q --no-build-isolation --no-deps -e .

build-tests: gtest test-tools
	GRAPHLIFT_BUILD_TESTS=1 $(RUN) -m pip install -q --no-build-isolation --no-deps -e .

gtest:
	@if [ -e /usr/include/gtest/gtest.h ] || [ -e /usr/local/include/gtest/gtest.h ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -q && apt-get install -q -y libgtest-dev; \
	else echo "GoogleTest is missing. Debian, Ubuntu: sudo apt-get install libgtest-dev"; exit 1; fi

BUILD = build/$(shell $(RUN) -c 'import sys; print(sys.implementation.cache_tag)')

ctest:
	$(VENV)/bin/ctest --test-dir $(BUILD) --output-on-failure

# Tests that measure time, and those that share a GPU, run one after another. Models, operators and random graphs run once
# more with all passes off.
BESIDE = -n $(WORKERS) --dist worksteal
pytest:
	GRAPHLIFT_STRICT=1 $(RUN) -m pytest $(BESIDE) -m "not alone and not gpu" tests
	GRAPHLIFT_STRICT=1 $(RUN) -m pytest -m "alone or gpu" tests
	GRAPHLIFT_STRICT=1 GRAPHLIFT_SKIP_PASSES=all $(RUN) -m pytest $(BESIDE) -m "without_passes and not gpu" tests

lint: test-tools
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(if $(CPP),$(VENV)/bin/clang-format --dry-run --Werror $(CPP))

format: test-tools
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .
	$(if $(CPP),$(VENV)/bin/clang-format -i $(CPP))

other-pythons:
	$(RUN) tests/project/other_pythons.py

# Python allocates with malloc, so that every object is watched; leaks are not looked for: interpreters keep much for good.
ASAN_BUILD = build/asan
ASAN_RUN = LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" PYTHONMALLOC=malloc \
	ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 GRAPHLIFT_BUILD=$(ASAN_BUILD) GRAPHLIFT_STRICT=1

asan: gtest test-tools
	$(VENV)/bin/cmake -S . -B $(ASAN_BUILD) -G Ninja -DPython_EXECUTABLE=$(abspath $(RUN)) -DCMAKE_MAKE_PROGRAM=$(abspath $(VENV)/bin/ninja) \
		-DGRAPHLIFT_BUILD_TESTS=ON -DGRAPHLIFT_SANITIZE=address
	$(VENV)/bin/cmake --build $(ASAN_BUILD)
	ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc $(VENV)/bin/ctest --test-dir $(ASAN_BUILD) --output-on-failure
	$(ASAN_RUN) $(RUN) -m pytest -p no:cacheprovider $(ASAN_TESTS)

ASAN_TESTS ?= tests/capture tests/evaluator/test_corpus.py

# Memory errors without a build of its own; minutes. Undefined values are not looked for: torch's kernels are full of them.
VALGRIND = PYTHONMALLOC=malloc OMP_NUM_THREADS=1 valgrind --undef-value-errors=no --num-callers=25 \
	--suppressions=tests/valgrind.supp --error-exitcode=1

valgrind: build-tests
	GRAPHLIFT_BUILD=$(BUILD) $(VALGRIND) $(RUN) tests/valgrind_capture.py
	$(VALGRIND) $(BUILD)/tests/capture_test
	$(VALGRIND) $(BUILD)/tests/torch_test

clean:
	rm -rf build dist pyfrontend/graphlift/*.so
