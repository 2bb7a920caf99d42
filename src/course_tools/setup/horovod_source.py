"""Horovod's source: the release, checked by its digest, with the edits of edits.toml."""

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

from distlab.launch.horovod import VERSION

SHA256 = "92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0"


class NotBuilt(Exception):
    """Horovod could not be built or installed; the message is one sentence that says why."""


class Edit(NamedTuple):
    """One replacement in the release's source; `old` must stand in `file` exactly once."""

    file: str
    old: str
    new: str


_EDITS = tomllib.loads(Path(__file__).with_name("edits.toml").read_text())
EDITS, EDITS_FOR_NCCL = ([Edit(**edit) for edit in _EDITS[kind]] for kind in ("all", "nccl"))


def unpack(cache: Path, folder: Path, edits: Sequence[Edit], output: TextIO) -> Path:
    """The release's edited source in `folder`; its archive is kept in `cache`.

    Raises CalledProcessError if the archive cannot be fetched, ValueError if an edit does not fit.
    """
    archive = cache / f"horovod-{VERSION}.tar.gz"
    if not archive.exists():
        requirement = folder / "horovod.txt"
        requirement.write_text(f"horovod=={VERSION} --hash=sha256:{SHA256}\n")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary=horovod", "--no-build-isolation"]
        command += ["--require-hashes", "--dest", str(folder), "--requirement", str(requirement)]
        subprocess.run(command, check=True, stdout=output, stderr=output)
        shutil.move(folder / archive.name, archive)
    shutil.unpack_archive(archive, folder)
    source = folder / f"horovod-{VERSION}"
    for edit in edits:
        text = (source / edit.file).read_text(encoding="utf-8")
        if text.count(edit.old) != 1:
            raise ValueError(f"{edit.file} of Horovod {VERSION} does not have the text {edit.old!r} once.")
        (source / edit.file).write_text(text.replace(edit.old, edit.new), encoding="utf-8")
    return source
