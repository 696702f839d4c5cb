# Everything a developer calls, by name. The work is done by CMake, Ninja, ctest and pytest.
#   BUILD=folder   another build folder, e.g. for a second working session in one checkout, with a Python module of its own
#   OPTIONS=...    options of CMake for a build folder that is made anew, such as another compiler or library
#   JOBS=n         parallel jobs
#   CLANG=name     the compiler of `make clang`
#   PREFIX=folder  where `make install` puts headers, library, command line and CMake package
# A build holds its folder's lock, since two Ninjas in one folder would spoil its records.
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
CLANG ?= clang-16
PYTHON := .venv/bin/python
ifneq ($(BUILD),build)
  export UMBRA_BUILD := $(BUILD)
  export PYTHONPATH := $(abspath $(BUILD))/python
endif

.PHONY: build programs setup install standalone demo test test-cpp test-python golden bench compare interop clang asan asan-python tsan debug fuzz format clean help

build: setup $(BUILD)/build.ninja ## set up, then build library, command line and Python module (the default)
	@flock $(BUILD) cmake --build $(BUILD) -j $(JOBS)

programs: build ## tests, benchmarks and examples, too
	@flock $(BUILD) cmake --build $(BUILD) -j $(JOBS) --target programs

setup: ## install what is missing and make .venv
	@tools/setup

$(BUILD)/build.ninja: | setup
	@cmake --preset release -B $(BUILD) $(OPTIONS)

standalone: setup $(BUILD)/build.ninja ## the command line as a folder of its own, build/standalone
	@flock $(BUILD) cmake --build $(BUILD) -j $(JOBS) --target standalone
	$(BUILD)/standalone/umbra --version

install: build ## install into PREFIX (/usr/local)
	cmake --install $(BUILD) --prefix $(PREFIX)

demo: build ## run the C++ and the Python demonstration
	@flock $(BUILD) cmake --build $(BUILD) -j $(JOBS) --target example_demo
	$(BUILD)/example_demo
	$(PYTHON) examples/python/demo.py

test: test-cpp test-python ## all tests

test-cpp: programs ## C++ tests, examples and the installed package
	ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j $(JOBS)

test-python: build ## Python tests
	$(PYTHON) -m pytest -q tests/python

golden: programs ## compare with the golden results
	$(BUILD)/golden_report

bench: programs ## run every benchmark
	@for program in $(BUILD)/bench_*; do echo "== $$program"; $$program || exit 1; done

compare: programs ## measure against PyTorch and others
	tools/compare

interop: programs ## exchange files with PyTorch
	tools/interop

clang: ## all tests of a build by clang, in build-clang
	@$(MAKE) test BUILD=build-clang OPTIONS='-DCMAKE_C_COMPILER=$(CLANG) -DCMAKE_CXX_COMPILER=$(subst clang,clang++,$(CLANG))'

# Leaks are left out: oneDNN's and OpenMP's pools live as long as the process. A refused allocation is null, as malloc's is, and one that
# runs away is refused.
SANITIZED := ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=6144
asan debug: setup ## C++ tests under the sanitizers; C++ tests of a debug build
	@cmake --preset $@ > /dev/null
	@flock build-$@ cmake --build build-$@ -j $(JOBS) --target all programs
	$(SANITIZED) ctest --test-dir build-$@ --output-on-failure --no-tests=error -j $(JOBS)

# A worker of pytest-xdist for each core (WORKERS="-n 16 -p no:warnings"), where that is installed, ends alone where the sanitizers end it.
asan-python: setup ## Python tests under the sanitizers
	@cmake --preset asan -DUMBRA_PYTHON_MODULE=ON > /dev/null
	@flock build-asan cmake --build build-asan -j $(JOBS)
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" $(SANITIZED) \
	  PYTHONPATH=$(abspath build-asan)/python $(PYTHON) -m pytest -q $(WORKERS) tests/python

# What runs side by side: the tests of threads. OpenBLAS and oneDNN are not compiled with the sanitizer.
tsan: setup ## C++ tests of threads under the thread sanitizer
	@cmake --preset tsan > /dev/null
	@flock build-tsan cmake --build build-tsan -j $(JOBS) --target test_aot test_kernels
	TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 build-tsan/test_aot --gtest_filter='Threads*'
	TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:die_after_fork=0 build-tsan/test_kernels --gtest_filter='Parallel*'

fuzz: programs ## fuzz the readers of files: TIME=60 seconds each, TARGETS="zip json"
	tools/fuzz $(TARGETS)

format: ## format the C++ sources
	@git ls-files '*.h' '*.cpp' | xargs --no-run-if-empty clang-format -i

clean: ## remove build folders and the built Python module
	rm -rf build build-clang build-debug build-asan build-tsan build-fuzz python/umbra/*.so

help: ## this list
	@awk -F ':.*## ' '/^[a-z][a-z -]*:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
