# Every target installs its dependencies, even on a new machine.
PYTHON ?= python3
export PYTHON
# Tests start hundreds of processes, each of which would compile all modules.
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
# The demo does not need the development tools, but uses their environment if it exists.
RUNNABLE := $(if $(wildcard $(INSTALLED)),$(INSTALLED),$(VENV)/runnable)

.PHONY: help demo grafana test check soak bench howto metrics dashboards clean

help:
	@echo "make demo       run a Cassandra node under load and print casstat's rows for it"
	@echo "make grafana    run Grafana with casstat's dashboards and a demo cluster (requires GRAFANA_HOME)"
	@echo "make test       run all tests, including those on real servers"
	@echo "make check      check lint, types and layers, and run unit tests"
	@echo "make soak       run an agent for an hour with one fault per minute"
	@echo "make bench      measure CPU, memory and latency on real nodes (two hours)"
	@echo "make acceptance-NAME   run a script in acceptance/"
	@echo "make howto      regenerate the pages in docs/howto from runs on real nodes (an hour)"
	@echo "make metrics    regenerate docs/metrics.md from the catalogue"
	@echo "make dashboards regenerate the Grafana dashboards and Prometheus rules"

$(INSTALLED): EXTRA := dev
$(VENV)/runnable: EXTRA := demo
$(INSTALLED) $(VENV)/runnable: setup.cfg pyproject.toml
	sh tools/prepare python
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --editable '.[$(EXTRA)]'
	touch $@

demo: $(RUNNABLE)
	sh tools/prepare demo
	sh tools/demo $(BIN)/casstat

test: export THOROUGH_TESTS := 1
test: check
	$(BIN)/mypy
	sh tools/prepare test
# Fault tests mostly wait, so four run at a time, together with the downloads and builds for tests/real.
	nice -n 10 $(BIN)/python -m tests.real.fetch > $(VENV)/fetch.log 2>&1 & fetch=$$!; \
	$(BIN)/pytest tests/faults -m "not alone" --numprocesses 4 --dist worksteal; code=$$?; \
	wait $$fetch || { cat $(VENV)/fetch.log; exit 1; }; exit $$code
# No other program may run during these tests.
	$(BIN)/pytest tests/faults -m alone
# The soak test mostly waits, and tests marked `beside` use little CPU, so other tests of real nodes run at the same time.
	$(BIN)/pytest tests/soak --numprocesses 2 --dist loadfile > $(VENV)/soak.log 2>&1 & soak=$$!; \
	$(BIN)/pytest tests/real -m beside > $(VENV)/beside.log 2>&1 & beside=$$!; \
	$(BIN)/pytest tests/real -m "not beside"; code=$$?; \
	wait $$soak || code=1; wait $$beside || code=1; cat $(VENV)/soak.log $(VENV)/beside.log; exit $$code

check: $(INSTALLED)
	sh tools/prepare check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
# `make test` also checks the types of the tests.
	$(BIN)/mypy collector exporters dashboards cli casstat.py
	$(BIN)/lint-imports
	$(BIN)/pytest tests --ignore tests/faults --ignore tests/real --ignore tests/soak --numprocesses 2 --dist worksteal

soak: $(INSTALLED)
	CASSTAT_SOAK_MIN=60 $(BIN)/pytest tests/soak/test_soak.py -s

bench: $(INSTALLED)
	sh tools/prepare test
	$(BIN)/python -m benchmarks

# The stem is the module's name: acceptance-readme-walk runs acceptance/readme_walk.py.
acceptance-%: $(INSTALLED)
	sh tools/prepare acceptance
	$(BIN)/python -m acceptance.$(subst -,_,$*) $(ARGS)

howto: $(INSTALLED)
	sh tools/prepare acceptance
	$(BIN)/python -m docs.howto $(ARGS)

# Runs until Ctrl-C.
grafana: $(INSTALLED)
	sh tools/prepare demo
	sh tools/grafana $(BIN)/casstat $(VENV)

metrics: $(INSTALLED)
	$(BIN)/casstat metrics --format markdown > docs/metrics.md

dashboards: $(INSTALLED)
	$(BIN)/python -m dashboards.grafana
	$(BIN)/python -m dashboards.rules

clean:
	rm -rf $(VENV) build *.egg-info
