"""A library that counts a program's MPI calls, built on the spot, and what it has counted.

library = build(source, folder)  # source: mpi_profile.c of chapter 11's programs
launch.mpirun(program, environment={"LD_PRELOAD": str(library), "MPI_PROFILE": str(folder / "profile")})
read(folder / "profile")[0]  # the rows of rank 0
"""

import csv
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from distlab.runtime.errors import PlainError


class NoCompiler(PlainError, RuntimeError):
    """The library cannot be built here; the message says why."""


class RoutineCalls(NamedTuple):
    """Calls of one routine with one data type by one rank: how many, their bytes (its own part) and seconds."""

    routine: str
    type: str
    calls: int
    bytes: int
    seconds: float


def build(source: Path, folder: Path) -> Path:
    """Compile the C file with MPI's compiler into `folder`; the library. Raises NoCompiler."""
    compiler = shutil.which("mpicc")
    if not compiler:
        raise NoCompiler("There is no mpicc in this environment; `make doctor` says what is missing and how to fix it.")
    library = folder / f"lib{source.stem}.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise NoCompiler(f"mpicc could not compile {source.name}: {last}. Install a C compiler, for example gcc.")
    return library


def read(prefix: Path) -> dict[int, list[RoutineCalls]]:
    """By rank, what the library wrote as PREFIX.RANK.csv; raises FileNotFoundError when no rank wrote anything."""
    files = {int(file.suffixes[-2][1:]): file for file in prefix.parent.glob(f"{prefix.name}.*.csv")}
    if not files:
        raise FileNotFoundError(f"no rank wrote {prefix}.RANK.csv: was the program run with the library, over MPI?")
    return {rank: _rows(files[rank]) for rank in sorted(files)}


def _rows(file: Path) -> list[RoutineCalls]:
    with file.open(newline="") as lines:
        return [
            RoutineCalls(line["routine"], line["type"], int(line["calls"]), int(line["bytes"]), float(line["seconds"]))
            for line in csv.DictReader(lines)
        ]
