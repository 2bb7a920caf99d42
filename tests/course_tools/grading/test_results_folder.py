"""The results of one run never replace those of another without a trace."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from course_tools.grading.results_folder import replacing


def grade(folder: Path, text: str, said: list[str]) -> None:
    with replacing(folder, said.append) as new:
        (new / "grades.csv").write_text(text)


def test_the_results_of_the_run_before_are_kept_and_named(tmp_path: Path) -> None:
    said: list[str] = []
    for text in ("first", "second", "third"):
        grade(tmp_path / "build" / "grades", text, said)
    assert (tmp_path / "build" / "grades" / "grades.csv").read_text() == "third"
    kept = [Path(sentence.removesuffix(".").rpartition(" ")[2]) for sentence in said]
    assert [(folder / "grades.csv").read_text() for folder in kept] == ["first", "second"]


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A shared folder that `build/grades` is a link to, with a file of somebody else's in it."""
    folder = tmp_path / "drive" / "course"
    folder.mkdir(parents=True)
    folder.chmod(0o2770)
    (folder / "plan.txt").touch()
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "grades").symlink_to(folder)
    return folder


def test_results_go_to_where_a_link_leads_and_earlier_ones_stay_there(shared: Path, tmp_path: Path) -> None:
    said: list[str] = []
    for text in ("first", "second", "third"):
        grade(tmp_path / "build" / "grades", text, said)
    assert (tmp_path / "build" / "grades").is_symlink() and len(list((tmp_path / "build").iterdir())) == 1
    assert {file.name for file in shared.iterdir() if file.is_file()} == {"grades.csv", "plan.txt"}
    assert (shared / "grades.csv").read_text() == "third" and shared.stat().st_mode & 0o7777 == 0o2770
    kept = [Path(sentence.removesuffix(".").rpartition(" ")[2]) for sentence in said]
    assert [(folder / "grades.csv").read_text() for folder in kept] == ["first", "second"]
    assert all(folder.resolve().parent == shared for folder in kept) and len(list(shared.iterdir())) == 4


def test_no_page_of_an_earlier_run_is_among_those_of_a_later_one(shared: Path, tmp_path: Path) -> None:
    with replacing(tmp_path / "build" / "grades", print) as new:
        (new / "feedback" / "alice").mkdir(parents=True)
    grade(tmp_path / "build" / "grades", "second", [])
    [page] = shared.rglob("alice")
    assert page.parent.parent.name.startswith("grades-")


def test_an_interrupted_run_leaves_a_shared_folder_as_it_was(shared: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "build" / "grades", print) as new:
        (new / "half").touch()
        raise KeyboardInterrupt
    assert [file.name for file in shared.iterdir()] == ["plan.txt"]


@pytest.mark.parametrize("fault", [KeyboardInterrupt, SystemExit, OSError])
def test_a_run_that_is_interrupted_leaves_everything_as_it_was(tmp_path: Path, fault: type[BaseException]) -> None:
    grade(tmp_path / "grades", "first", [])
    with pytest.raises(fault), replacing(tmp_path / "grades", print) as new:
        (new / "half").touch()
        raise fault
    assert [file.relative_to(tmp_path) for file in tmp_path.rglob("*.csv")] == [Path("grades/grades.csv")]
    assert [folder.name for folder in tmp_path.iterdir()] == ["grades"]


BEGINS_AND_WAITS = """
import sys
from pathlib import Path
from course_tools.grading.results_folder import replacing
with replacing(Path(sys.argv[1]), print) as new:
    (new / "half").touch()
    print("begun", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("linked", [False, True])
def test_what_a_killed_run_has_left_goes_with_the_next_and_that_of_a_running_one_stays(
    tmp_path: Path, linked: bool
) -> None:
    if linked:
        (tmp_path / "shared").mkdir()
        (tmp_path / "grades").symlink_to("shared")
    command = [sys.executable, "-c", BEGINS_AND_WAITS, str(tmp_path / "grades")]
    killed, running = (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    )
    with killed, running:
        for process in (killed, running):
            assert process.stdout and process.stdout.readline() == "begun\n"
        killed.kill()
        killed.wait()
        assert len(list(tmp_path.rglob("half"))) == 2
        grade(tmp_path / "grades", "first", [])
        assert len(list(tmp_path.rglob("half"))) == 1
        running.communicate("")
    assert running.returncode == 0 and (tmp_path / "grades" / "half").exists()
    assert not list(tmp_path.rglob("*-unfinished-*"))


@pytest.mark.parametrize("linked", [False, True])
def test_of_two_runs_at_once_both_are_kept(tmp_path: Path, linked: bool) -> None:
    if linked:
        (tmp_path / "shared").mkdir()
        (tmp_path / "grades").symlink_to("shared")
    both_began, said = threading.Barrier(2), list[str]()

    def run(number: int) -> None:
        with replacing(tmp_path / "grades", said.append) as new:
            both_began.wait(300)
            (new / "grades.csv").write_text(str(number))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert sorted(file.read_text() for file in tmp_path.rglob("grades.csv")) == ["0", "1"]
    assert (tmp_path / "grades" / "grades.csv").exists() and len(said) == 1


@pytest.mark.parametrize("linked", [False, True])
def test_results_are_in_place_before_anything_is_said_that_nobody_reads(tmp_path: Path, linked: bool) -> None:
    if linked:
        (tmp_path / "shared").mkdir()
        (tmp_path / "grades").symlink_to("shared")
    grade(tmp_path / "grades", "first", [])

    def nobody_reads(text: str) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError), replacing(tmp_path / "grades", nobody_reads) as new:
        (new / "grades.csv").write_text("second")
    assert (tmp_path / "grades" / "grades.csv").read_text() == "second"
    assert not list(tmp_path.rglob("*unfinished*"))


@pytest.mark.parametrize("linked", [True, False], ids=["a link", "a folder"])
def test_a_folder_on_a_full_disk_is_named(shared: Path, tmp_path: Path, linked: bool) -> None:
    folder = tmp_path / "build" / "grades" if linked else tmp_path / "grades"
    with pytest.raises(OSError, match="No space left on device") as raised, replacing(folder, print) as new:
        (new / "grades.csv").symlink_to("/dev/full")
        (new / "grades.csv").write_text("alice,1")
    assert raised.value.filename == str(shared if linked else folder)
    assert [entry.name for entry in shared.iterdir()] == ["plan.txt"] and not (tmp_path / "grades").exists()
