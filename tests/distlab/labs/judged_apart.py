"""What is judged in a process of its own: answers that need TensorFlow, and programs that print JSON."""

import json
import multiprocessing
import subprocess
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

START_TENSORFLOW = [
    *(("03", "mirrored"), ("04", "distributed"), ("05", "run"), ("16", "train")),
    *(("09", "start"), ("09", "feeding"), ("09", "training")),
]
WITH_TENSORFLOW = [("02", "mixed_batches"), ("02", "repeats"), ("02", "train"), *START_TENSORFLOW]
SECONDS = 1500


def printed_json(command: list[str], **options: Any) -> Any:
    """What a program prints in its last line, as JSON."""
    run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, **options)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of a module gives in a fresh process: the devices of TensorFlow are chosen once in each."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
        return fresh.submit(function, *arguments).result(SECONDS)
