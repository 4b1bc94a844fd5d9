# The front door. CMake and Ninja do the work; the presets are in CMakePresets.json.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
TEST_JOBS ?= 2
CORES := $(shell nproc)
CTEST = ctest --output-on-failure -j $(TEST_JOBS)

# Sanitizers slow the proofs and the full matrices down most and gain least there; what PMIx
# does inside a program is not ours to mend. A crowd is many processes that do the same.
ASAN_TESTS ?= -LE 'long|proof' \
	-E 'matrix_schedules|check-|crowd|launch_(openmpi|slurm|hosts)'
# The thread sanitizer cannot see what another process orders, as perf's ranks do; deciding
# what NCCL decides is the work of one thread; a crowd is many processes that do the same. A root that has
# ended is joined at the next meeting or by exit(), which children of tests do not call. Drives by
# RDMA take half a minute each there.
TSAN_TESTS ?= -L 'unit|api|multi' -LE 'long|proof' \
	-E 'matrix_schedules|check-|perf_|test_(graph|topo|tune_model)|weft_|pictures|crowd_hosts|drive_ofi_(v[789]|v1[01]|rdma|standin_rdma)'

.PHONY: build run test test-long test-asan test-tsan test-clang fuzz bench accuracy lint format install \
	clean help deps-build deps-test deps-clang deps-lint

build: deps-build
	@$(add_cuda)
	@$(call compile,release)

# Only what it runs, and the library below that: a first table need wait neither for the tests
# nor for CUDA kernels, which take minutes. Every other target adds them.
run: deps-build
	@[ -e build/build.ninja ] || cmake --preset release -DWEFT_CUDA_LATER=ON >/dev/null
	@$(call compile,release,weft all_reduce_perf)
	build/bin/weft info
	build/bin/all_reduce_perf -b 8 -e 64M -f 8 -t $(CORES)

test: build deps-test
	$(CTEST) --test-dir build -LE long

test-long: build deps-test
	$(CTEST) --test-dir build -C long -L long

test-asan: deps-build deps-test
	@$(call compile,asan)
	ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
		$(CTEST) --test-dir build-asan $(ASAN_TESTS)

test-tsan: deps-build deps-test
	@$(call compile,tsan)
	TSAN_OPTIONS='halt_on_error=1 report_thread_leaks=0 suppressions=$(CURDIR)/tests/tsan-loader' \
		$(CTEST) --test-dir build-tsan $(TSAN_TESTS)

test-clang: deps-build deps-test deps-clang
	@$(call compile,clang)
	$(CTEST) --test-dir build-clang -LE 'long|proof'

fuzz: deps-build deps-clang
	@$(call compile,fuzz)
	scripts/fuzz

bench: build
	bench/run
	bench/network
	bench/doctor
	bench/scale

# Predictions of `weft sim` and `weft plan` against published measurements, each source left
# out in turn.
accuracy: build
	build/bin/weft sim --accuracy ../shared/data/published-busbw.csv
	build/bin/weft plan --accuracy ../shared/data/published-training.csv

lint: deps-build deps-lint
	scripts/lint

# Rewrite every C file in the house layout.
format: deps-lint
	clang-format-14 -i $$(git ls-files '*.c' '*.h' '*.cu' '*.cuh' ':!include/nccl.h')

# The library, the tools and what goes with them; no tests.
install: deps-build
	@$(add_cuda)
	@$(call compile,release,product)
	cmake --install build --prefix $(PREFIX)

clean:
	rm -rf build build-debug build-asan build-tsan build-clang build-fuzz

help:
	@echo 'make            build the library, the tools and the tests into build/'
	@echo 'make run        build two tools, describe this machine, measure all_reduce on it'
	@echo 'make test       build and test; test-long: the tests that need minutes and 14 GB'
	@echo 'make test-asan  the same with address and undefined-behaviour sanitizers'
	@echo 'make test-tsan  the same with the thread sanitizer; test-clang: with clang'
	@echo 'make fuzz       hostile files for FUZZ_SECONDS (60) per reader, with clang'
	@echo 'make accuracy   predictions of weft sim and weft plan against published figures'
	@echo 'make bench      compare with other libraries on this machine'
	@echo 'make lint       layout, layers, sizes, headers, parameters, static analysis'
	@echo 'make format     rewrite the C files in the house layout'
	@echo 'make install    into PREFIX ($(PREFIX)); DESTDIR is honoured'
	@echo 'make clean      remove all build folders'

# Phony targets see no pattern rules, so the names stand here.
deps-build deps-test deps-clang deps-lint: deps-%:
	@scripts/install-deps $*

define add_cuda
! grep -qs '^WEFT_CUDA_LATER:BOOL=ON' build/CMakeCache.txt || \
	cmake --preset release -DWEFT_CUDA_LATER=OFF >/dev/null
endef

# compile,PRESET[,TARGET ..]: all targets unless named.
define compile
if [ ! -e build$(if $(filter release,$(1)),,-$(1))/build.ninja ]; then \
	cmake --preset $(1) >/dev/null; \
fi && cmake --build --preset $(1) -j $(JOBS) $(if $(2),--target $(2))
endef
