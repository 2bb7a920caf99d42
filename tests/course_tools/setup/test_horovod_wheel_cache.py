"""The cache of Horovod's wheels: complete entries only, built once, whoever asks and whatever is killed."""

import queue
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import pytest
from filelock import FileLock

from course_tools.setup.horovod_wheel_cache import DIGEST, BuildFailed, cached_wheel

pytestmark = pytest.mark.fault


def build(folder: Path) -> None:
    (folder / "horovod.whl").write_text("built")


def fail_to_build(folder: Path) -> None:
    (folder / "half").write_text("built")
    raise BuildFailed("no luck")


def build_nothing(folder: Path) -> None:
    pass


@pytest.mark.parametrize("faulty", [fail_to_build, build_nothing])
def test_a_build_that_fails_leaves_no_entry_and_the_next_may_succeed(wheels: Path, faulty: object) -> None:
    with pytest.raises(BuildFailed):
        cached_wheel("name", faulty)
    assert [file.name for file in wheels.iterdir()] == ["name.lock"]
    assert cached_wheel("name", build).read_text() == "built"


@pytest.mark.parametrize("faulty", [fail_to_build, build_nothing])
def test_a_wheel_is_kept_where_building_it_again_fails(wheels: Path, faulty: object) -> None:
    wheel = cached_wheel("name", build)
    with pytest.raises(BuildFailed):
        cached_wheel("name", faulty, again=True)
    assert cached_wheel("name", faulty) == wheel


def test_whoever_waits_for_the_build_of_another_says_so(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels.mkdir(parents=True, exist_ok=True)
    held = FileLock(wheels / "name.lock")
    held.acquire()
    with ThreadPoolExecutor(1) as other:
        said: queue.Queue[str] = queue.Queue()
        monkeypatch.setattr(sys, "stdout", mock.Mock(write=said.put))
        waiting = other.submit(cached_wheel, "name", build)
        try:
            assert said.get(timeout=300) == "Another set-up is building Horovod: waiting for it."
        finally:
            held.release()
        assert waiting.result().read_text() == "built"


def test_an_emptied_entry_is_built_again(wheels: Path) -> None:
    (wheels / "name").mkdir(parents=True)
    assert cached_wheel("name", build) == wheels / "name" / "horovod.whl"
    shutil.rmtree(wheels / "name")
    assert cached_wheel("name", build).exists()


def empty(entry: Path) -> None:
    (entry / "horovod.whl").write_text("")


def cut(entry: Path) -> None:
    (entry / "horovod.whl").write_text("bui")


def change(entry: Path) -> None:
    (entry / "horovod.whl").write_text("bUilt")


def replace_by_a_folder(entry: Path) -> None:
    (entry / "horovod.whl").unlink()
    (entry / "horovod.whl").mkdir()


def lose_the_digest(entry: Path) -> None:
    (entry / DIGEST).unlink()


def replace_the_entry_by_a_file(entry: Path) -> None:
    shutil.rmtree(entry)
    entry.write_text("built")


def link_to_nothing(entry: Path) -> None:
    (entry / "horovod.whl").unlink()
    (entry / "horovod.whl").symlink_to("nothing")


@pytest.mark.parametrize(
    "damage",
    [empty, cut, change, replace_by_a_folder, lose_the_digest, replace_the_entry_by_a_file, link_to_nothing],
)
def test_a_damaged_wheel_is_replaced_by_a_new_one(wheels: Path, damage: Callable[[Path], None]) -> None:
    cached_wheel("name", build)
    damage(wheels / "name")
    assert cached_wheel("name", build).read_text() == "built"
    assert cached_wheel("name", build_nothing).read_text() == "built", "the new one is kept"


def test_a_wheel_is_read_from_a_cache_that_cannot_be_written_to(wheels: Path) -> None:
    cached_wheel("name", build)
    (wheels / "name.lock").unlink()
    wheels.chmod(0o555)
    try:
        assert cached_wheel("name", build_nothing) == wheels / "name" / "horovod.whl"
        assert not (wheels / "name.lock").exists()
    finally:
        wheels.chmod(0o755)


def test_where_the_cache_is_a_file_the_wheel_is_kept_beside_the_environment(
    wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels.parent.parent.write_text("no folder")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    assert cached_wheel("name", build) == tmp_path / "environment" / "wheels" / "name" / "horovod.whl"
    assert cached_wheel("name", build_nothing).read_text() == "built"


def test_a_wheel_for_something_else_is_left_alone(wheels: Path) -> None:
    cached_wheel("name-1", build)
    cached_wheel("name", build)
    assert {file.name for file in wheels.iterdir() if file.is_dir()} == {"name", "name-1"}


BUILDER = """
import sys
from course_tools.setup.horovod_wheel_cache import cached_wheel

def build(folder):
    print("building", flush=True)
    sys.stdin.readline()
    (folder / "horovod.whl").write_text("built")

print("asking", flush=True)
print(cached_wheel("name", build).name)
"""


def start_builder() -> subprocess.Popen:
    command = [sys.executable, "-c", BUILDER]
    builder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert builder.stdout.readline() == "asking\n"
    return builder


@pytest.mark.slow
def test_two_processes_that_ask_at_once_build_once(wheels: Path) -> None:
    first = start_builder()
    assert first.stdout.readline() == "building\n"
    second = start_builder()
    assert second.stdout.readline() == "Another set-up is building Horovod: waiting for it.\n"
    assert first.communicate("go\n", timeout=300)[0] == "horovod.whl\n"
    assert second.communicate("go\n", timeout=300)[0] == "horovod.whl\n"
    assert first.returncode == second.returncode == 0


def test_what_a_killed_build_left_is_removed_by_the_next(wheels: Path) -> None:
    killed = start_builder()
    assert killed.stdout.readline() == "building\n"
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=300)
    assert len([file for file in wheels.iterdir() if file.is_dir()]) == 1
    assert cached_wheel("name", build).read_text() == "built"
    assert [file.name for file in wheels.iterdir() if file.is_dir()] == ["name"]
