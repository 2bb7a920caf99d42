"""What NVIDIA's nccl-tests print: the time of a collective on GPUs, by its size.

sizes, seconds = zip(*((row.bytes, row.seconds) for row in read(file)))
costs.fit(sizes, seconds, lambda n: costs.all_reduce("ring", ranks, n))  # α and β
"""

import re
from pathlib import Path
from typing import NamedTuple


class Timed(NamedTuple):
    """One size, out of place: bytes, seconds, the two bandwidths in bytes per second, and how many values are wrong.

    wrong: 0 where the program did not check (`-c 0`).
    """

    bytes: int
    seconds: float
    algorithm_bandwidth: float
    bus_bandwidth: float
    wrong: int


# Size, count, type, operation and root, of which older versions leave out the last or both; then the columns for "out
# of place", and at least four more. mpirun or srun may have put the rank in front of the line.
_NUMBER = r"\s+([\d.e+]+)"
_ROW = re.compile(rf"\b(\d+)\s+\d+\s+[a-z]\w*(?:\s+[a-z]\w*)?(?:\s+-?\d+)?{_NUMBER * 3}\s+(N/A|\d\S*)(?:\s+\S+){{4}}")


def read(file: Path) -> list[Timed]:
    """The rows in the order of the file; raises ValueError if it has none. Other lines are passed over."""
    rows = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if row := _ROW.search(line):
            microseconds, algorithm, bus = map(float, row.group(2, 3, 4))
            wrong = 0 if row[5] == "N/A" else round(float(row[5]))  # until 2022 the largest error, such as 2e-07
            rows.append(Timed(int(row[1]), 1e-6 * microseconds, 1e9 * algorithm, 1e9 * bus, wrong))
    if not rows:
        raise ValueError(f"{file} has no line of nccl-tests, such as `1048576 262144 float sum -1 27.76 37.78 …`")
    return rows
