"""Print the table of a scaling study from the results that its jobs have written.

    python scaling_table.py scaling-17  # the folder of slurm/array.sbatch or pbs/array.pbs

One row for each result: ranks, step time, images per second, speedup over the smallest number
of ranks, efficiency. The row of a job that failed is missing, and the others stand.
"""

import argparse
import json
from pathlib import Path
from typing import Any

HEADINGS = ("ranks", "step", "images/s", "speedup", "efficiency")


def read(folder: Path) -> list[dict[str, Any]]:
    """The results in a folder, by their number of ranks."""
    results = [json.loads(file.read_text()) for file in folder.glob("*.json")]
    return sorted(results, key=lambda result: result["ranks"])


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
