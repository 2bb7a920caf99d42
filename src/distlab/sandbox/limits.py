"""What a student's process may use."""

from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes; `threads` counts the threads of all processes, `printed` characters, `files` those on its disk.

    `address_space` is that of each process (None: without limit), `memory` what all of them use together.
    """

    memory: int = 1536 * MIB
    address_space: int | None = 3072 * MIB
    processes: int = 40
    threads: int = 100
    file: int = 32 * MIB
    disk: int = 64 * MIB
    files: int = 2000
    open_files: int = 256
    printed: int = 1_000_000


PLAIN = Limits()
# TensorFlow reserves address space that it never uses and starts threads by the number of cores.
TENSORFLOW = Limits(6144 * MIB, None, 60, 4000, 256 * MIB, 512 * MIB, 20_000, 4096)
