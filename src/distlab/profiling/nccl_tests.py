"""What NVIDIA's nccl-tests print: the time of a collective on GPUs, by its size.

sizes, seconds = zip(*((row.bytes, row.seconds) for row in read(file)))
costs.fit(sizes, seconds, lambda n: costs.all_reduce("ring", ranks, n))  # α and β
"""

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


OUT_OF_PLACE = slice(-8, -4)
"""Of each line the four columns before those for "in place": those in front of them differ between the versions."""


def read(file: Path) -> list[Timed]:
    """The rows in the order of the file; raises ValueError if it has none. Other lines are passed over."""
    rows = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        words = line.split()
        if len(words) > 9 and words[0].isdecimal():
            try:
                microseconds, algorithm, bus = map(float, words[OUT_OF_PLACE][:3])
            except ValueError:  # a line of the program's log
                continue
            wrong = words[OUT_OF_PLACE][3]  # a count, or "N/A"; until 2022 the largest error, such as 2e-07
            count = int(wrong) if wrong.isdecimal() else 0
            rows.append(Timed(int(words[0]), 1e-6 * microseconds, 1e9 * algorithm, 1e9 * bus, count))
    if not rows:
        raise ValueError(f"{file} has no line of nccl-tests, such as `1048576 262144 float sum -1 27.76 37.78 …`")
    return rows
