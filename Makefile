# The single entry point of the course. `make help` lists the targets.

PYTHON ?=
VENV := .venv
comma := ,
space := $() $()
BIN := $(VENV)/bin

# What makes the environment: $(PYTHON) if given, else the first one that fits. The first of a name on PATH may not
# start, as with pyenv, or was built without a library; so the others on PATH come after it.
PYTHONS := python3 python3.13 python3.12 python3.11 python
FITS := import bz2, ctypes, sqlite3, ssl, sys, zlib; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))

# Elsewhere (make -f) nothing would be found.
$(if $(wildcard src/distlab),,$(error Run make in the course's folder: make -C FOLDER))

# A switch is on by NAME=1 and off by NAME=0 or without it; $(call switch,NAME,--option).
switch = $(if $(filter 1,$($1)),$2,$(if $(filter-out 0,$($1)),$(error $1=$($1) makes no sense; write $1=1 or leave it out)))
# The other way round, for what is on by default.
switch_off = $(if $(filter 0,$($1)),$2,$(if $(filter-out 1,$($1)),$(error $1=$($1) makes no sense; write $1=0 or leave it out)))
# A number from 1 on, or the default $2 where none is given.
count = $(if $($1),$(if $(filter-out 0%,$(shell echo '$(subst ','\'',$($1))' | grep -xE '[0-9]+')),$($1),$(error \
	$1=$($1) makes no sense: it must be 1 or more)),$2)

TARGETS := help environment setup horovod setup-frameworks setup-mxnet record-frameworks record-measurements record-cluster \
	doctor lab progress execute test test-all test-fast notebooks labs check release cluster cluster-down grade figures site slides html map \
	bench test-faults support-table lock lock-frameworks clean

# Only what is typed after `make` counts: a variable that the shell has for something else must choose no seed and no chapter.
NAMES := ONLY AT_ONCE WORKERS EPOCHS DATASET LAB FRESH SUBMISSIONS DUE LATE_SHARE SEED WEAK SITE SOLUTIONS EXECUTED PART TORCH \
	GPU MPI CUDA NODES FORCE TAGS
FROM_SHELL := $(foreach name,$(NAMES),$(if $(filter environment%,$(origin $(name))),$(name)))
$(foreach name,$(FROM_SHELL),$(eval $(name) :=)$(if $(filter 0,$(MAKELEVEL)),$(warning $(name) is set in your shell and not \
	used; type it after make if it is meant: make $(MAKECMDGOALS) $(name)=...)))

# Elsewhere these variables would be ignored, and everything done instead of a part; the same for ONLY= without a name.
TAKE_ONLY := execute notebooks labs release grade slides bench record-frameworks
TAKE_AT_ONCE := execute test test-all test-fast grade
TAKE_WORKERS := execute
TAKE_EPOCHS := execute
TAKE_DATASET := execute
TAKE_LAB := check
TAKE_FRESH := lab
refuse = $(if $(strip $($1)),,$(error $1= names nothing; give it a value or leave it out))$(if \
	$(filter $(TAKE_$1),$(MAKECMDGOALS)),,$(error $1 is for make $(subst $(space),$(comma) ,$(TAKE_$1)) only))
$(foreach name,ONLY AT_ONCE WORKERS EPOCHS DATASET LAB FRESH,$(if $(filter 0,$(MAKELEVEL)),$(if \
	$(filter command,$(firstword $(origin $(name)))),$(call refuse,$(name)))))

# Several chapters may be written with commas, with blanks or with both.
ifneq ($(strip $(ONLY)),)
override ONLY := $(or $(subst $(space),$(comma),$(strip $(subst $(comma),$(space),$(ONLY)))),$(ONLY))
endif

# The same for a variable in small letters, and for a chapter that is taken for a target.
$(foreach name,only at_once workers epochs dataset lab fresh submissions due seed site part,$(if \
	$(filter command,$(firstword $(origin $(name)))),$(error Write $(name)= in capital letters)))
# A misspelt name would be ignored, and all chapters run. Names for other programs, such as DISTLAB_DATA, are passed on.
TYPED := $(strip $(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(name))))
UNKNOWN := $(foreach name,$(filter-out $(NAMES) PYTHON HOME PATH TMPDIR SHELL CC CXX,$(TYPED)),$(if $(findstring _,$(name)),,$(name)))
$(if $(strip $(UNKNOWN)),$(error There is no variable $(strip $(UNKNOWN)); there are $(NAMES) PYTHON))
TIMES := $(strip $(foreach goal,$(MAKECMDGOALS),$(if $(findstring :,$(goal)),$(goal))))
$(if $(TIMES),$(error $(TIMES) is no target: put day and time into quotes: DUE='2026-11-20 18:00'))
NO_TARGET := $(filter-out $(TARGETS) $(VENV)/ready,$(MAKECMDGOALS))
$(if $(NO_TARGET),$(error $(NO_TARGET) is no target (make help lists them): name chapters by ONLY=01$(comma)03, a lab by \
	LAB=06, a chapter of your copy by FRESH=03))

NOTEBOOK_OPTIONS = $(if $(DATASET),--dataset $(DATASET)) $(if $(EPOCHS),--epochs $(EPOCHS)) \
	$(if $(WORKERS),--workers $(WORKERS)) $(if $(ONLY),--only "$(ONLY)") $(if $(AT_ONCE),--at-once $(AT_ONCE)) \
	$(call switch_off,SITE,--no-site)

# Workers of pytest-xdist: as many as tests/conftest.py finds right, or make test AT_ONCE=2.
TEST_WORKERS = --numprocesses $(call count,AT_ONCE,auto) --dist loadscope --no-loadscope-reorder
TEST_OPTIONS = --durations 25 $(TEST_WORKERS)

GRADE_OPTIONS = $(if $(DUE),--due "$(DUE)") $(if $(LATE_SHARE),--late-share $(LATE_SHARE)) $(if $(SEED),--seed $(SEED)) \
	$(if $(ONLY),--only "$(ONLY)") $(if $(AT_ONCE),--at-once $(AT_ONCE)) $(call switch,WEAK,--weak)

# A program started by a target is found in the environment first, as if it were activated, unless .venv leads nowhere.
export PATH := $(if $(shell [ -L $(VENV) ] && ! [ -e $(VENV) ] && echo nowhere),,$(CURDIR)/$(BIN):)$(PATH)
# What a shell has set for other packages would be imported instead of the course's.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP

.DEFAULT_GOAL := help
.PHONY: $(TARGETS)

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | awk -F'\t' '{printf "  %-19s  %s\n", $$1, $$2}'

# The environment without Horovod, for the targets below that then ask for one kind of Horovod or the other.
environment:
	@for python in $(or $(PYTHON),$(PYTHONS) $$(which -a $(PYTHONS) 2> /dev/null)); do \
		"$$python" -c '$(FITS)' 2> /dev/null && PYTHONPATH=src exec "$$python" -P -m course_tools.setup.environment; \
	done; echo "The course needs Python 3.11, 3.12 or 3.13 (with bz2, ctypes, sqlite3, ssl and zlib) and found none;" \
		"name one: make setup PYTHON=/path/to/python3.12"; exit 1

setup: environment  ## make .venv with everything the course needs, or add what is missing
	@exec $(BIN)/distlab setup

horovod: environment  ## build and install Horovod again; for NVIDIA GPUs: make horovod GPU=nccl MPI=system CUDA=packages
	@exec $(BIN)/distlab setup --retry $(if $(GPU),--gpu $(GPU)) $(if $(MPI),--mpi $(MPI)) $(if $(CUDA),--cuda $(CUDA))

$(VENV)/ready:
	@$(MAKE) --no-print-directory setup

setup-frameworks: setup  ## add PyTorch, DeepSpeed and Ray in .venv-frameworks: make setup-frameworks PART=torch
	@exec $(BIN)/distlab setup-frameworks $(or $(PART),torch deepspeed ray) $(call switch,TORCH,--any-torch)

setup-mxnet: setup  ## add Apache MXNet in .venv-mxnet
	@exec $(BIN)/distlab setup-frameworks mxnet

doctor: setup  ## check this machine for the course and say how to fix what is missing
	@exec $(BIN)/distlab doctor

lab: setup  ## open JupyterLab on your own copy, in work/; make lab FRESH=03 only gives a chapter back as it was
	@exec $(BIN)/distlab lab $(if $(FRESH),--fresh $(FRESH))

progress: setup  ## show which chapters of your copy ran and which exercises are solved
	@exec $(BIN)/distlab progress

execute: setup  ## run every notebook: make execute DATASET=mnist EPOCHS=5 WORKERS=4 ONLY=03
	@exec $(BIN)/distlab execute $(NOTEBOOK_OPTIONS)

test: setup  ## run the tests that take at most six seconds, in parallel: make test AT_ONCE=2
	@exec $(BIN)/python -m pytest -m "not long" $(TEST_OPTIONS)

test-all: setup  ## run all tests, as before a release; takes twice as long
	@exec $(BIN)/python -m pytest $(TEST_OPTIONS)

test-fast: setup  ## run the quick tests, in less than a minute
	@exec $(BIN)/python -m pytest -m "not slow" $(TEST_WORKERS)

test-faults: setup  ## inject every fault of the long list and print the results
	@exec $(BIN)/python -m pytest -p tests.fault_report -m fault

notebooks: setup  ## write the notebooks with fresh outputs from notebooks/src, on an idle machine: make notebooks ONLY=03
	@exec $(BIN)/distlab notebooks $(if $(ONLY),--only "$(ONLY)") $(call switch,FORCE,--force) $(call switch,TAGS,--tags)

labs: setup  ## write the labs' notebooks from labs/src: make labs ONLY=06
	@exec $(BIN)/distlab labs $(if $(ONLY),--only "$(ONLY)")

check: setup  ## check the exercises of a lab in the terminal: make check LAB=06
	@$(if $(LAB),exec $(BIN)/distlab check $(LAB),echo "Name the lab: make check LAB=06"; exit 2)

release: setup  ## write the labs to hand out to build/release, and the course folder for nbgrader
	@exec $(BIN)/distlab release $(if $(ONLY),--only "$(ONLY)")

cluster: setup  ## start a Slurm cluster of three nodes on this machine (Linux): make cluster NODES=2
	@exec $(BIN)/distlab cluster up $(if $(NODES),--nodes $(NODES))

cluster-down: setup  ## end the cluster; nothing of it stays
	@exec $(BIN)/distlab cluster down

grade: setup  ## grade SUBMISSIONS/STUDENT/NN_topic/lab.ipynb: make grade SUBMISSIONS=folder DUE='2026-11-20 18:00'
	@$(if $(SUBMISSIONS),exec $(BIN)/distlab grade "$(SUBMISSIONS)" $(GRADE_OPTIONS),echo "Name the folder: make grade SUBMISSIONS=folder"; exit 2)

figures: setup  ## draw every picture in figures/ again
	@[ -w figures ] || { echo "You may not write into the folder figures, where the pictures are."; exit 1; }
	@for script in figures/src/[0-9][0-9]_*.py; do $(BIN)/python "$$script" || exit 1; done

site: setup  ## write the course's site to build/site: make site EXECUTED=1 (your own outputs) SOLUTIONS=0 (none in the labs)
	@exec $(BIN)/distlab site $(call switch,EXECUTED,--executed) $(call switch_off,SOLUTIONS,--no-solutions)

slides: setup  ## write a deck of slides for each chapter to build/slides: make slides ONLY=03 EXECUTED=1
	@exec $(BIN)/distlab slides $(if $(ONLY),--only "$(ONLY)") $(call switch,EXECUTED,--executed)

html: setup  ## write HTML pages of the committed notebooks to build/html
	@exec $(BIN)/distlab pages

bench: setup  ## measure everything that has a goal; writes build/bench.json and a page: make bench ONLY=training
	@exec $(BIN)/distlab bench $(if $(ONLY),--only "$(ONLY)")

support-table: setup  ## measure which strategy works with which training API; takes a quarter of an hour
	@exec $(BIN)/python labs/08_other_strategies/measure_support.py

record-frameworks: setup  ## run the programs of notebook 14 and record their results: make record-frameworks ONLY=ddp
	@exec $(BIN)/python labs/14_other_frameworks/record.py $(subst $(comma), ,$(ONLY))

record-measurements: setup  ## measure hosts with slow links, on an idle machine with Slurm, and record it for chapter 15
	@exec $(BIN)/python labs/15_clusters/record_measurements.py

record-cluster: setup  ## run notebook 15 on the cluster that runs (make cluster) and record what it gives
	@exec $(BIN)/distlab record-cluster $(call switch,FORCE,--force)

map: $(VENV)/ready  ## write the tables of the README, docs/teaching.md and docs/sources.md from build/report.json
	@exec $(BIN)/distlab map

lock: $(VENV)/ready  ## choose the newest versions that pyproject.toml allows and write requirements.lock
	@$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras --generate-hashes \
		--no-emit-index-url --custom-compile-command "make lock" --output-file requirements.lock pyproject.toml

LAB_14 := labs/14_other_frameworks
lock-frameworks: $(VENV)/ready  ## write the locks of the other frameworks; those over the course keep to requirements.lock
	@for part in torch deepspeed ray mxnet; do \
		[ $$part = mxnet ] && course= || course="--constraints requirements.lock"; \
		echo torch | $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
			--no-emit-index-url --custom-compile-command "make lock-frameworks" --excludes /dev/stdin $$course \
			--output-file $(LAB_14)/$$part.lock $(LAB_14)/$$part.in || exit 1; \
	done

# What no target can make again: grades, what nbgrader or an instructor has put into nbgrader's course folder, and
# labs that were changed after they were released.
GRADES := $(wildcard build/grades*)
COURSE_FOLDER := build/release/nbgrader
GRADEBOOK := $(strip $(filter-out $(addprefix $(COURSE_FOLDER)/,nbgrader_config.py source),$(wildcard $(COURSE_FOLDER)/*)) \
	$(filter-out $(patsubst labs/%,$(COURSE_FOLDER)/source/%,$(wildcard labs/[0-9]*)),$(wildcard $(COURSE_FOLDER)/source/*)) $(wildcard build/release/changed-*))
MADE := $(if $(GRADES)$(GRADEBOOK),,build) $(VENV) $(VENV).before .venv-frameworks .venv-mxnet .pytest_cache .hypothesis .ruff_cache .mypy_cache \
	.import_linter_cache src/*.egg-info

clean:  ## remove what the targets made, including .venv and the other environments, but no grades
	@[ ! -e $(VENV)/ready ] || ! command -v flock > /dev/null || flock --nonblock $(VENV)/ready true || \
		{ echo "A program of this course still runs, such as make lab or make execute: end it, then run make clean again."; exit 1; }
	@rm -rf $(MADE) 2> /dev/null || { echo "Not removed, since you may not write there:" $$(ls -d $(MADE) 2> /dev/null); exit 1; }
	@$(if $(GRADES)$(GRADEBOOK),find build -mindepth 1 -maxdepth 1 ! -name 'grades*' $(if $(GRADEBOOK),! -name release) -exec rm -rf {} +)
	@$(if $(GRADES),echo "The grades stay; remove them yourself when nobody needs them: rm -r build/grades*")
	@$(if $(GRADEBOOK),echo "build/release stays: it holds a gradebook or changed labs or something else that make release does not" \
		"write. Remove it yourself when nobody needs it: rm -r build/release")
