"""Damage a checkpoint in one of eight ways, to see who notices.

    damage.damage("copy/ckpt-20", "index missing")

A module for notebook 13. Work on a copy.
"""

import shutil
from collections.abc import Callable
from pathlib import Path


def cut(file: Path, size: int) -> None:
    """Keep the first `size` bytes."""
    file.write_bytes(file.read_bytes()[:size])


def overwrite(file: Path, position: int, new: bytes) -> None:
    """Put other bytes in the middle of a file; its size stays."""
    old = file.read_bytes()
    file.write_bytes(old[:position] + new + old[position + len(new) :])


def put_older(*files: Path) -> None:
    """Replace files of a checkpoint by those of the one before in the same folder."""
    for file in files:
        name, _, suffix = file.name.partition(".")
        names = [name, *(other.stem for other in file.parent.glob("ckpt-*.index"))]
        number, *numbers = (int(each.rpartition("-")[2]) for each in names)
        before = max(other for other in numbers if other < number)
        shutil.copy(file.with_name(f"ckpt-{before}.{suffix}"), file)


def flip_bit(file: Path) -> None:
    """Change the first bit."""
    overwrite(file, 0, bytes([file.read_bytes()[0] ^ 1]))


DAMAGES: dict[str, Callable[[Path, Path], object]] = {
    "data cut in half": lambda data, index: cut(data, data.stat().st_size // 2),
    "data missing": lambda data, index: data.unlink(),
    "a block of zeros": lambda data, index: overwrite(data, 4096, bytes(4096)),
    "one bit flipped": lambda data, index: flip_bit(data),
    "older data": lambda data, index: put_older(data),
    "older data and index": lambda data, index: put_older(data, index),
    "index cut in half": lambda data, index: cut(index, index.stat().st_size // 2),
    "index missing": lambda data, index: index.unlink(),
}


def damage(prefix: str | Path, how: str) -> None:
    """Damage the files of a checkpoint that has one data file."""
    DAMAGES[how](Path(f"{prefix}.data-00000-of-00001"), Path(f"{prefix}.index"))
