# A thin front of CMake and Ninja. `make help` lists what there is.
PREFIX ?= /usr/local
DESTDIR ?=
# Two jobs a core would not help a link; the machine's own count is the default.
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
BUILD := build
CACHE := $(or $(HEADWAY_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/headway)
PYTHON := $(CACHE)/python/bin/python
# CMAKE_ARGS goes to the first configuration, for example CMAKE_ARGS=-DHEADWAY_WERROR=ON
CMAKE_ARGS ?=
# The slow tests have these labels; make test-all runs them too.
SLOW := slow|stress
# What starts MPI jobs or judges times is RUN_SERIAL, and never stands beside another test.
CTEST := ctest --test-dir $(BUILD) --output-on-failure --no-tests=error --timeout 300 -j$(JOBS)

.DEFAULT_GOAL := all
.PHONY: all help deps python configure demo test test-all test-asan test-tsan bench bench-release bench-prefetch bench-matching install uninstall wheel format check clean

all: configure ## build the library, the launcher and the tools (release, in build/)
	@cmake --build $(BUILD) -j $(JOBS)

help: ## this list
	@sed -n 's/^\([a-z -]*\):.*## /  make \1 - /p' Makefile

deps: ## install missing system packages (as root, or through sudo after asking)
	@scripts/install-deps.sh

python: deps ## make the Python environment
	@scripts/python-env.sh >/dev/null

configure: deps
	@test -f $(BUILD)/build.ninja -a -z "$(CMAKE_ARGS)" || \
	  cmake --preset release $(CMAKE_ARGS)

# Only what the demo runs: the library, the launcher, its program, the cluster tool.
demo: configure python ## run the main job: apps/pes on 2 and 4 ranks
	@cmake --build $(BUILD) -j $(JOBS) --target headway_demo
	@$(PYTHON) apps/pes/demo.py --build $(BUILD)

# Some tests compare with MPICH; without a network they are skipped and say so.
.PHONY: peers
peers: deps
	@scripts/peers.sh >/dev/null || echo "note: no MPICH, tests that need it will be skipped"

test: all python peers ## build and run all tests but the slow ones
	@PATH="$(dir $(PYTHON)):$$PATH" $(CTEST) -LE '^($(SLOW))$$'

test-all: all python peers ## run all tests, the slow ones too
	@PATH="$(dir $(PYTHON)):$$PATH" $(CTEST)

# The rooms and the library's programs under a sanitizer, in a build folder of its own.
test-asan test-tsan: test-%: python peers ## the same tests under AddressSanitizer, ThreadSanitizer
	@cmake --preset $*
	@cmake --build build-$* -j $(JOBS)
	@PATH="$(dir $(PYTHON)):$$PATH" ctest --test-dir build-$* --output-on-failure \
	  --no-tests=error --timeout 300 -j$(JOBS) -LE '^($(SLOW)|install)$$'

# BENCH_ARGS=--resume goes on with a run that was stopped; docs/benchmarks.md tells of the others.
BENCH_ARGS ?=
bench: all python ## compare with MPICH and Open MPI
	@scripts/peers.sh >/dev/null
	@$(PYTHON) bench/run.py --build $(BUILD) $(BENCH_ARGS)

# RELEASE_ARGS=--quick for a few minutes; docs/early-release-results.md tells of the others.
RELEASE_ARGS ?=
bench-release: all python ## early release off and on: the paper's programs on simulated clusters
	@cmake --build $(BUILD) -j $(JOBS) --target guard_cost
	@$(PYTHON) bench/early_release.py --build $(BUILD) $(RELEASE_ARGS)

# PREFETCH_ARGS=--quick for a few minutes; docs/benchmarks.md tells of the others.
PREFETCH_ARGS ?=
bench-prefetch: all python ## message prefetching off and on: the paper's programs on its cluster
	@$(PYTHON) bench/prefetch.py --build $(BUILD) $(PREFETCH_ARGS)

# MATCHING_ARGS=--quick for a minute; docs/matching-results.md tells of the others.
MATCHING_ARGS ?=
bench-matching: all python ## message matching: all designs, 2 to 65,536 virtual ranks, beside the paper
	@$(PYTHON) bench/matching/run.py --build $(BUILD) $(MATCHING_ARGS)

# These two build what they hold and no tests.
install: configure ## install below PREFIX (default /usr/local); DESTDIR is honoured
	@cmake --build $(BUILD) -j $(JOBS) --target headway_installed
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(abspath $(PREFIX))"

uninstall: ## remove what the last `make install` put in place
	@cmake -DMANIFEST=$(BUILD)/install_manifest.txt -P cmake/uninstall.cmake

wheel: configure python ## build the Python wheel in dist/
	@$(PYTHON) -m pip wheel --quiet --no-deps --disable-pip-version-check \
	  --config-settings build-dir=$(BUILD) -w dist . && ls dist/*.whl

format: ## format all C and C++ files in place
	@scripts/python-env.sh --dev >/dev/null
	@scripts/check-format.sh --fix

check: configure ## format, walls between rooms, stale names, shape, static analysis
	@scripts/python-env.sh --dev >/dev/null
	@scripts/check-format.sh
	@$(PYTHON) scripts/check-walls.py --self-test
	@$(PYTHON) scripts/check-walls.py
	@$(PYTHON) scripts/check-names.py --self-test
	@$(PYTHON) scripts/check-names.py
	@$(PYTHON) scripts/check-shape.py --self-test
	@$(PYTHON) scripts/check-shape.py
	@$(PYTHON) abi/generate.py --count
	@$(PYTHON) bindings/fortran/generate.py --count
	@cmake --build $(BUILD) --target headway_generate
	@$(PYTHON) scripts/check-tidy.py --build $(BUILD)

clean: ## remove the build folders
	@cmake -E rm -rf build build-debug build-asan build-tsan build-arm64 dist
