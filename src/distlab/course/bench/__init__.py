"""`make bench`: the course's measurements in one run, written to one JSON file; no test depends on a figure in it.

| module | what it measures |
|---|---|
| `simulator` | messages per second of the virtual cluster |
| `all_reduce` | real all-reduces over MPI, the course's ring, Horovod |
| `training` | images per second of one model, trained in every way |
"""

import json
from pathlib import Path

from distlab.course.bench import all_reduce, simulator, training


def write(file: Path) -> None:
    """Run everything and write the figures to `file`."""
    results = {"simulator": simulator.measure(), "all_reduce": all_reduce.measure(), "training": training.measure()}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(results, indent=1) + "\n")
