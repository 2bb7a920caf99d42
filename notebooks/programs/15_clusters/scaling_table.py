"""Print the table of a scaling study from the results that its jobs have written.

    python scaling_table.py scaling-17  # the folder of slurm/array.sbatch or pbs/array.pbs

One row for each result: ranks, step time, images per second, speedup over the smallest number
of ranks, efficiency. A job that failed has written no result, or half of one: its row is
missing, and the others stand.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HEADINGS = ("ranks", "step", "images/s", "speedup", "efficiency")
MEASURED = ("ranks", "step_seconds", "images_per_second")


def read(folder: Path) -> list[dict[str, Any]]:
    """The results in a folder, by their number of ranks; what is no result is named."""
    results = []
    for file in sorted(folder.glob("*.json")):
        if (result := result_in(file)) is None:
            print(f"{file} holds no result of a job, and is left out.", file=sys.stderr)
        else:
            results.append(result)
    return sorted(results, key=lambda result: result["ranks"])


def result_in(file: Path) -> dict[str, Any] | None:
    """What a job has written; None if something else is there."""
    try:
        result = json.loads(file.read_text())
        return result if min(result[name] for name in MEASURED) > 0 else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def rows(results: list[dict[str, Any]]) -> list[list[str]]:
    """The cells of the table; efficiency is the speedup over the ratio of the ranks."""
    first = results[0]
    table = []
    for result in results:
        speedup = result["images_per_second"] / first["images_per_second"]
        efficiency = speedup * first["ranks"] / result["ranks"]
        table.append(
            [
                f"{result['ranks']}",
                f"{1e3 * result['step_seconds']:.1f} ms",
                f"{result['images_per_second']:.0f}",
                f"{speedup:.2f}",
                f"{efficiency:.0%}",
            ]
        )
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print the table of a scaling study.")
    parser.add_argument("folder", type=Path, help="with one JSON file for each job")
    folder = parser.parse_args().folder
    results = read(folder)
    if not results:
        parser.error(f"there is no result in {folder}: look at the jobs' outputs")
    for row in [HEADINGS, *rows(results)]:
        print("  ".join(f"{cell:>10}" for cell in row))
