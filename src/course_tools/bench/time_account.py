"""Where a notebook's processor seconds go: imports, tracing, drawing, other Python, and compiled code.

py-spy looks at the Python stack of every process of the notebook, the kernel and its ranks, many times a second. What
the samples leave of the processor seconds that the system counted was spent in threads that run no Python: TensorFlow's
operations and its compiling of graphs, NumPy's, MPI's.
"""

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from course_tools.runner_child import NotebookJob
from distlab import devices
from distlab.runtime import processes

SAMPLES_PER_SECOND = 20
SECONDS_PER_NOTEBOOK = 900
IMPORTS, TRACING, DRAWING, COMPUTING, PYTHON = "imports", "tracing", "drawing", "computing", "other Python"
KINDS = (IMPORTS, TRACING, COMPUTING, DRAWING, PYTHON)

# The first kind whose words a stack contains. TensorFlow builds graphs in func_graph and autograph.
_WORDS = {
    IMPORTS: ("importlib",),
    DRAWING: ("matplotlib", "distlab/draw"),
    TRACING: ("func_graph", "autograph", "tracing_compilation"),
}
_COMPILED = ("tensorflow/python/eager", "numpy/", "horovod_", "tensorflow/python/framework/ops.py")


def account(python: str, notebook: Path) -> dict[str, float]:
    """Seconds by kind, with `elapsed` and `idle`, the seconds in which a core had nothing to do for the notebook.

    `python`: the interpreter that runs it. Raises RuntimeError when py-spy is missing or fails.
    """
    if not shutil.which("py-spy"):
        raise RuntimeError("py-spy is not installed")
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        job_file, samples = Path(folder) / "job.json", Path(folder) / "samples.txt"
        job_file.write_text(json.dumps(asdict(NotebookJob(str(notebook), f"{folder}/executed.ipynb", 600))))
        spy = ["py-spy", "record", "--subprocesses", "--nonblocking", "--rate", str(SAMPLES_PER_SECOND)]
        spy += ["--format", "raw", "--output", str(samples), "--"]
        finished = processes.run([*spy, python, "-m", "course_tools.runner_child", str(job_file)], SECONDS_PER_NOTEBOOK)
        outcomes = [json.loads(line) for line in finished.output.splitlines() if line.startswith('{"outcome"')]
        if not outcomes or not samples.exists():
            raise RuntimeError(f"py-spy ended with status {finished.status}")
        outcome = outcomes[-1]["outcome"]
        sampled = classify(samples.read_text(errors="replace").splitlines())
    seconds = {kind: sampled[kind] / SAMPLES_PER_SECOND for kind in KINDS}
    compiled = outcome["processor_seconds"] - sum(seconds.values())
    seconds[COMPUTING] += max(0.0, compiled)
    elapsed = outcome["seconds"]
    return seconds | {"elapsed": elapsed, "idle": max(0.0, devices.cores() * elapsed - outcome["processor_seconds"])}


def classify(lines: Iterable[str]) -> Counter[str]:
    """Samples by kind, from py-spy's raw format: the frames of a stack, outermost first, and a number.

    py-spy reads processes that go on meanwhile, and may write a name with a line break in it: such lines are left out.
    """
    counts: Counter[str] = Counter()
    for line in lines:
        stack, _, number = line.rpartition(" ")
        if number.isdecimal():
            counts[_kind(stack)] += int(number)
    return counts


def _kind(stack: str) -> str:
    for kind, words in _WORDS.items():
        if any(word in stack for word in words):
            return kind
    innermost = stack.rpartition(";")[2]
    return COMPUTING if any(word in innermost for word in _COMPILED) else PYTHON
