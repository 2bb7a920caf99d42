"""Commands that find a small file system, or another file, of their own: full disks for real, seen by nobody else."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

SCRIPT = 'mount -t tmpfs -o "$2" none "$1" && shift 2 && exec "$@"'


def with_disk(folder: Path, options: str, command: Sequence[str]) -> list[str]:
    """The command in a namespace where `folder` is a tmpfs with these mount options, such as "size=1200k"."""
    return ["unshare", "--mount", "sh", "-c", SCRIPT, "sh", str(folder), options, *command]


def with_file(path: Path, file: Path, command: Sequence[str]) -> list[str]:
    """The command in a namespace where `file` is what there is at `path`."""
    return [
        "unshare",
        "--mount",
        "sh",
        "-c",
        'mount --bind "$2" "$1" && shift 2 && exec "$@"',
        "sh",
        str(path),
        str(file),
        *command,
    ]


def _may_mount() -> bool:
    try:
        return (
            not os.geteuid()
            and not subprocess.run(
                ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True
            ).returncode
        )
    except OSError:
        return False


needs_mounts = pytest.mark.skipif(not _may_mount(), reason="this user may not mount a disk for the test")
