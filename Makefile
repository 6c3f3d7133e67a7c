# `make demo` and `make test` are the whole set-up on a fresh Debian machine: each target installs the packages it needs
# (tools/install-packages.sh), builds with CMake and Ninja below build/, and runs.

JOBS ?= $(shell nproc)
TEST_JOBS ?= 2
FUZZ_SECONDS ?= 20
PREFIX ?= /usr/local

INSTALL_PACKAGES = tools/install-packages.sh
RELEASE = build/release
configure = mkdir -p build && { cmake $(1) >build/configure.log || { cat build/configure.log; exit 1; }; }

SOAK_SECONDS ?= 1200

.PHONY: build demo test test-clients test-page bench soak asan tsan fuzz format lint install clean help

build: packages-build $(RELEASE)/build.ninja
	@tools/build.sh $(RELEASE) $(JOBS) sluice
	@ln -sfn release/sluice build/sluice

demo: build
	@tools/demo.sh

test: packages-test
	@$(call configure,--preset release -DSLUICE_TESTS=ON $(BENCH_AT_FIRST))
	@tools/build.sh $(RELEASE) $(JOBS)
	@ln -sfn release/sluice build/sluice
	@ctest --test-dir $(RELEASE) --output-on-failure -j $(TEST_JOBS)

bench: packages-bench
	@$(call configure,--preset release -DSLUICE_BENCH=ON $(TESTS_AT_FIRST))
	@cmake --build $(RELEASE) -j $(JOBS)
	@ln -sfn release/sluice build/sluice
	@tools/bench.py $(if $(MODEL),--model $(MODEL) --memory $(or $(MEMORY),none))

# Options stay as they were chosen: once tests or benchmarks are on, they stay on in this build directory.
$(RELEASE)/build.ninja: | packages-build
	@$(call configure,--preset release -DSLUICE_TESTS=OFF -DSLUICE_BENCH=OFF -DSLUICE_UNITY=ON)
BENCH_AT_FIRST = $(if $(wildcard $(RELEASE)/build.ninja),,-DSLUICE_BENCH=OFF)
TESTS_AT_FIRST = $(if $(wildcard $(RELEASE)/build.ninja),,-DSLUICE_TESTS=OFF)

# A server under load and misuse, 20 minutes or 10,000 requests.
soak: build packages-bench
	@tools/soak.py build/sluice --seconds $(SOAK_SECONDS)

# Needs packages of a virtual environment: make test-clients PYTHON=VENV/bin/python (openai, anthropic, lm-eval), test-page (playwright).
PYTHON ?= python3
test-clients: build
	@tests/clients/curl_transcripts.py build/sluice
	@tests/clients/open_webui.py build/sluice
	@$(PYTHON) tests/clients/real_server.py build/sluice || { status=$$?; [ $$status = 77 ] && echo "NOTHING WAS TESTED"; exit $$status; }

test-page:
	@$(PYTHON) tests/page/test_page.py

asan: packages-test
	@$(call configure,--preset asan -DSLUICE_BENCH=OFF)
	@cmake --build build/asan -j $(JOBS)
	@ctest --test-dir build/asan --output-on-failure -j $(TEST_JOBS)

# ThreadSanitizer of GCC 12 cannot start where the kernel randomises addresses by more than 28 bits; setarch -R turns that off.
tsan: packages-test
	@$(call configure,--preset tsan -DSLUICE_BENCH=OFF)
	@no_random=$$(setarch -R true 2>/dev/null && echo "setarch -R"); \
	  $$no_random cmake --build build/tsan -j $(JOBS) && \
	  $$no_random ctest --test-dir build/tsan --output-on-failure -j $(TEST_JOBS)

fuzz: packages-fuzz
	@$(call configure,--preset fuzz)
	@cmake --build --preset fuzz -j $(JOBS)
	@tools/fuzz.sh $(FUZZ_SECONDS)

format: packages-format
	@tools/format.sh

lint: packages-lint
	@$(call configure,--preset debug)
	@tools/format.sh --check
	@tools/lint.sh build/debug

install: build
	@cmake --install $(RELEASE) --prefix $(PREFIX)

clean:
	rm -rf build

help:
	@echo "make demo      pack the bundled model and run it in less memory than it needs"
	@echo "make test      build and run all tests"
	@echo "make build     build/sluice"
	@echo "make bench     build and run the benchmarks: one page, rows kept in bench/results; MODEL=NAME.sluice MEMORY=8GB,none: whole runs, too"
	@echo "make soak      a server under load and misuse for SOAK_SECONDS (1200); make test-clients, make test-page: real clients, the page in a browser"
	@echo "make asan      tests under AddressSanitizer and UndefinedBehaviorSanitizer; make tsan: ThreadSanitizer"
	@echo "make fuzz      each fuzz target for FUZZ_SECONDS (20)"
	@echo "make format    clang-format over our sources; make lint: format check and clang-tidy"
	@echo "make install   into PREFIX (/usr/local)"

.PHONY: packages-build packages-bench packages-test packages-fuzz packages-format packages-lint
packages-build: ; @$(INSTALL_PACKAGES) build
packages-bench: ; @$(INSTALL_PACKAGES) build bench
packages-test: ; @$(INSTALL_PACKAGES) build test
packages-fuzz: ; @$(INSTALL_PACKAGES) build fuzz
packages-format: ; @$(INSTALL_PACKAGES) format
packages-lint: ; @$(INSTALL_PACKAGES) build test format lint
