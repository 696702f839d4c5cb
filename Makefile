# Everything a developer calls, by name. The work is done by CMake, Ninja, ctest and pytest.
#   BUILD=folder   another build folder, e.g. for a second working session in one checkout (without the Python module)
#   JOBS=n         parallel jobs
#   PREFIX=folder  where `make install` puts headers, library, command line and CMake package
# A build holds its folder's lock, since two Ninjas in one folder would spoil its records.
BUILD ?= build
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
PYTHON := .venv/bin/python
CONFIGURE_release := $(if $(filter-out build,$(BUILD)),-B $(BUILD) -DUMBRA_PYTHON=OFF)

.PHONY: build setup install standalone demo test test-cpp test-python golden bench compare interop asan tsan debug fuzz format clean help

build: setup $(BUILD)/build.ninja ## set up, then build everything (the default)
	@flock $(BUILD) cmake --build $(BUILD) -j $(JOBS)

setup: ## install what is missing and make .venv
	@tools/setup

$(BUILD)/build.ninja: | setup
	@cmake --preset release $(CONFIGURE_release)

standalone: setup $(BUILD)/build.ninja ## the command line as a folder of its own, build/standalone
	@flock $(BUILD) cmake --build $(BUILD) -j $(JOBS) --target standalone
	$(BUILD)/standalone/umbra --version

install: build ## install into PREFIX (/usr/local)
	cmake --install $(BUILD) --prefix $(PREFIX)

demo: build ## run the C++ and the Python demonstration
	@$(call need,$(BUILD)/example_demo)
	@$(call need,examples/python/demo.py)
	$(BUILD)/example_demo
	$(PYTHON) examples/python/demo.py

test: test-cpp test-python ## all tests

test-cpp: build ## C++ tests, examples and the installed package
	ctest --test-dir $(BUILD) --output-on-failure --no-tests=error -j $(JOBS)

test-python: build ## Python tests
	@$(call need,tests/python)
	$(PYTHON) -m pytest -q tests/python

golden: build ## compare with the golden results
	@$(call need,$(BUILD)/golden_report)
	$(BUILD)/golden_report

bench: build ## run every benchmark
	@ls $(BUILD)/bench_* > /dev/null 2>&1 || { echo "make bench: there is no benchmark yet (benchmarks/*.cpp)" >&2; exit 1; }
	@for program in $(BUILD)/bench_*; do echo "== $$program"; $$program || exit 1; done

compare: build ## measure against PyTorch and others
	@$(call need,tools/compare)
	tools/compare

interop: build ## exchange files with PyTorch
	@$(call need,tools/interop)
	tools/interop

# Leaks are left out: oneDNN's and OpenMP's pools live as long as the process. A refused allocation is null, as malloc's is, and one that
# runs away is refused.
asan debug: setup ## C++ tests under the sanitizers; C++ tests of a debug build
	@cmake --preset $@ > /dev/null
	@flock build-$@ cmake --build build-$@ -j $(JOBS)
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=6144 ctest --test-dir build-$@ --output-on-failure --no-tests=error -j $(JOBS)

# What runs side by side: the tests of threads. OpenBLAS and oneDNN are not compiled with the sanitizer.
tsan: setup ## C++ tests of threads under the thread sanitizer
	@cmake --preset tsan > /dev/null
	@flock build-tsan cmake --build build-tsan -j $(JOBS) --target test_aot test_kernels
	TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 build-tsan/test_aot --gtest_filter='Threads*'
	TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 build-tsan/test_kernels --gtest_filter='Parallel*'

fuzz: build ## fuzz the readers of files: TIME=60 seconds each, TARGETS="zip json"
	tools/fuzz $(TARGETS)

format: ## format the C++ sources
	@git ls-files '*.h' '*.cpp' | xargs --no-run-if-empty clang-format -i

clean: ## remove build folders and the built Python module
	rm -rf build build-debug build-asan build-tsan build-fuzz python/umbra/*.so

help: ## this list
	@awk -F ':.*## ' '/^[a-z][a-z -]*:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# A target whose program is not there fails, and says so.
need = test -e $(1) || { echo "make $@: $(1) is not there" >&2; exit 1; }
