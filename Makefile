# `make demo` and `make test` are all a newcomer needs; the rest is for daily work.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
export PYTHONHASHSEED := 0

.PHONY: demo test test-tpu setup format lint types layers tests pins clean

demo: $(VENV)/.ready
	$(BIN)/kernelcast demo

test: lint types layers tests

setup: $(VENV)/.ready

$(VENV)/.ready: requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
	  { echo "kernelcast needs Python 3.11, 3.12 or 3.13; got $$($(PYTHON) -V). Choose one: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

# What needs the extra tpu: XLA:TPU ahead of time. Not part of `make test`, which skips it without the extra.
test-tpu: $(VENV)/.ready-tpu
	$(BIN)/pytest -m tpu

$(VENV)/.ready-tpu: $(VENV)/.ready requirements/tpu.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/tpu.txt
	@touch $@

format: $(VENV)/.ready
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.ready
	$(BIN)/basedpyright

layers: $(VENV)/.ready
	$(BIN)/lint-imports

tests: $(VENV)/.ready
	$(BIN)/pytest

# Pins carry names and versions only: no index address, no hashes bound to one. The extra tpu has its own file,
# which agrees with the first.
COMPILE_PINS := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-header \
  --no-annotate pyproject.toml
pins:
	$(BIN)/python -m pip install --quiet uv
	$(COMPILE_PINS) --extra baselines --extra export --group dev -o requirements/dev.txt
	$(COMPILE_PINS) --extra tpu --constraint requirements/dev.txt -o requirements/tpu.txt

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
