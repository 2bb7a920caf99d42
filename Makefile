# The single entry point of the course. `make help` lists the targets; `.venv/bin/distlab` has more options than the
# variables ONLY, LAB, SUBMISSIONS, WEAK, DATASET, EPOCHS and WORKERS: see its --help or docs/commands.md.
BIN := .venv/bin
only = $(if $(ONLY),--only "$(ONLY)")
pytest = $(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

# What a target starts is found in the environment first, and imports no packages that the shell has set for others.
export PATH := $(CURDIR)/$(BIN):$(PATH)
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP

.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' Makefile)
help:  # a title, or a call and what it does
	@sed -n 's/^##@ //p; s/^[a-z-]*:.*## /  make /p' $(firstword $(MAKEFILE_LIST)) | \
		awk -F ' [|] ' '{printf(NF > 1 ? "%-32s  %s\n" : "\n%s\n", $$1, $$2)}'

# What makes the environment: $(PYTHON), else the first that fits. The first of a name on PATH may not start, as with pyenv.
PYTHONS := python3 python3.13 python3.12 python3.11 python
FITS := import bz2, ctypes, sqlite3, ssl, sys, zlib; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
environment:
	@for python in $(or $(PYTHON),$(PYTHONS) $$(which -a $(PYTHONS) 2> /dev/null)); do \
		"$$python" -c '$(FITS)' 2> /dev/null && PYTHONPATH=src exec "$$python" -P -m course_tools.setup.environment; \
	done; echo "The course needs Python 3.11, 3.12 or 3.13 (with bz2, ctypes, sqlite3, ssl and zlib) and found none;" \
		"name one: make setup PYTHON=/path/to/python3.12"; exit 1
##@ Study
setup: environment  ## setup | make .venv with everything the course needs, or add what is missing
	@exec $(BIN)/distlab setup
lab: setup  ## lab | open JupyterLab on your own copy, in work/
	@exec $(BIN)/distlab lab
check: setup  ## check LAB=06 | check the exercises of a lab in the terminal
	@exec $(BIN)/distlab check $(LAB)
progress: setup  ## progress | show which chapters of your copy ran and which exercises are solved
	@exec $(BIN)/distlab progress
doctor: setup  ## doctor | say what this machine has for the course, and how to fix what is missing
	@exec $(BIN)/distlab doctor
cluster: setup  ## cluster | start a Slurm cluster of three nodes on this machine (Linux)
	@exec $(BIN)/distlab cluster up
cluster-down: setup  ## cluster-down | end the cluster; nothing of it stays
	@exec $(BIN)/distlab cluster down
##@ Teach
execute: setup  ## execute ONLY=03 WORKERS=4 | run notebooks; also with DATASET=mnist EPOCHS=5
	@exec $(BIN)/distlab execute $(only) $(if $(DATASET),--dataset $(DATASET)) $(if $(EPOCHS),--epochs $(EPOCHS)) \
		$(if $(WORKERS),--workers $(WORKERS))
release: setup  ## release ONLY=06 | write the labs to hand out to build/release, and nbgrader's folder
	@exec $(BIN)/distlab release $(only)
grade: setup  ## grade SUBMISSIONS=folder | grade SUBMISSIONS/STUDENT/NN_topic/lab.ipynb
	@exec $(BIN)/distlab grade $(if $(SUBMISSIONS),"$(SUBMISSIONS)") $(only) $(if $(WEAK),--weak)
site: setup  ## site | write the course's site to build/site
	@exec $(BIN)/distlab site
slides: setup  ## slides ONLY=03 | write a deck of slides for each chapter to build/slides
	@exec $(BIN)/distlab slides $(only)
html: setup  ## html | write HTML pages of the committed notebooks to build/html
	@exec $(BIN)/distlab pages
##@ Maintain
test: setup  ## test | run all tests, in parallel
	@exec $(pytest) --durations 25
test-fast: setup  ## test-fast | run the quick tests, in less than a minute
	@exec $(pytest) -m "not slow"
notebooks: setup  ## notebooks ONLY=03 | run notebooks/src on an idle machine, and write the notebooks
	@exec $(BIN)/distlab notebooks $(only)
labs: setup  ## labs ONLY=06 | write the labs' notebooks from labs/NN_topic/lab.py
	@exec $(BIN)/distlab labs $(only)
figures: setup  ## figures | draw every picture in figures/ again
	@for script in figures/src/[0-9]*.py; do $(BIN)/python "$$script" || exit 1; done
bench: setup  ## bench ONLY=training | measure what has a goal; writes build/bench.json and a page
	@exec $(BIN)/distlab bench $(only)
horovod: environment  ## horovod GPU=nccl | build Horovod again, here for NVIDIA GPUs; also MPI=system CUDA=packages
	@exec $(BIN)/distlab setup --retry $(if $(GPU),--gpu $(GPU)) $(if $(MPI),--mpi $(MPI)) $(if $(CUDA),--cuda $(CUDA))
setup-frameworks: setup  ## setup-frameworks | add PyTorch, DeepSpeed, Ray and JAX
	@exec $(BIN)/distlab setup-frameworks
map: setup
	@exec $(BIN)/distlab map
support-table: setup
	@exec $(BIN)/python notebooks/programs/08b_keras_3/measure_support.py
record-frameworks: setup
	@exec $(BIN)/python notebooks/programs/14_other_frameworks/record.py $$(echo $(ONLY) | tr , ' ')
record-cluster: setup
	@exec $(BIN)/distlab record-cluster

compile = $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url
lock: setup  ## lock | choose the newest versions that pyproject.toml allows and write requirements.lock
	@$(compile) --all-extras --custom-compile-command "make lock" --output-file requirements.lock pyproject.toml
lock-frameworks: setup
	@for part in torch deepspeed ray jax mxnet; do \
		[ $$part = mxnet ] || course="--constraints requirements.lock"; \
		echo torch | $(compile) --custom-compile-command "make lock-frameworks" --excludes /dev/stdin $$course \
			--output-file notebooks/programs/14_other_frameworks/$$part.lock notebooks/programs/14_other_frameworks/$$part.in || exit 1; course=; \
	done
clean:  ## clean | remove what the targets made, also .venv, but no grades and no release
	@[ ! -d build ] || find build -mindepth 1 -maxdepth 1 ! -name 'grades*' ! -name release -exec rm -rf {} +
	@rm -rf .venv .venv-frameworks .venv-mxnet .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis src/*.egg-info
