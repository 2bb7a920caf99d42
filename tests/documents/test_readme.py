"""The README: it opens with a picture and the two commands, and says truly what was verified with which versions."""

import re
from pathlib import Path

import pytest

HEADING = "## What was verified where"
# How the README names a package, and the lock that has its version.
LOCKS = {
    "TensorFlow": ("tensorflow", "requirements.lock"),
    "tf-keras": ("tf-keras", "requirements.lock"),
    "Keras 3": ("keras", "requirements.lock"),
    "DeepSpeed": ("deepspeed", "notebooks/programs/14_other_frameworks/deepspeed.lock"),
    "Ray": ("ray", "notebooks/programs/14_other_frameworks/ray.lock"),
    "MXNet": ("mxnet", "notebooks/programs/14_other_frameworks/mxnet.lock"),
}


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text()


def verified(readme: str) -> dict[str, tuple[str, str]]:
    """Version and state by the name in the first column of the table."""
    table = readme[readme.index(HEADING) :].split("\n\n")[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    assert all(len(row) == 3 for row in rows)
    return {name: (version, state) for name, version, state in rows if name}


def test_the_readme_opens_with_a_picture_and_the_two_commands(readme: str) -> None:
    blocks = readme.split("\n\n")
    assert blocks[0].startswith("# ") and blocks[1].startswith("![")
    opening = readme[: readme.index("## Two commands")]
    assert len(opening.splitlines()) < 30
    assert "## " not in opening.removeprefix("# ")


def test_the_versions_are_those_of_the_locks(readme: str, root: Path) -> None:
    versions = {}
    for names, (listed, _) in verified(readme).items():
        versions |= dict(zip(names.split(", "), listed.split(", "), strict=False))
    for name, (package, lock) in LOCKS.items():
        pinned = re.search(rf"^{package}==([^ ;\\]+)", (root / lock).read_text(), re.MULTILINE)
        assert pinned and versions[name] == pinned[1], name


def test_the_readme_says_that_no_gpu_has_run_it(readme: str) -> None:
    _, state = verified(readme)["GPU"]
    assert "not yet run" in state


@pytest.mark.parametrize("folder", ["docs", "labs"])
def test_no_document_says_that_the_course_runs_on_gpus_without_saying_that_it_was_not_run_there(
    folder: str, root: Path, readme: str
) -> None:
    texts = {file.name: file.read_text() for file in (root / folder).rglob("*.md")} | {"README.md": readme}
    promise = re.compile(r"\bruns? on GPUs?\b|\bsame programs?\b[^.]*\bGPUs?\b", re.IGNORECASE)
    assert {name for name, text in texts.items() if promise.search(text) and "not yet run" not in text} == set()
