"""A classroom: the course belongs to root and is read-only, and ordinary users with homes of their own work with it.

Root may write everywhere, so the folder is mounted read-only, in a namespace of the test's own, and the commands run as
users who have no name on this machine.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from distlab import launch

pytestmark = [pytest.mark.slow, pytest.mark.fault]

USER = 20_000
USERS = 30 if "DISTLAB_FAULTS" in os.environ else 3
# $1: the course; $2: the interpreter's folder; $3: a folder above them that is closed to others, or nothing; $4: where
# to keep them meanwhile; $5: the user.
SCRIPT = """
set -e
course=$1 base=$2 closed=$3 keep=$4 user=$5
shift 5
mkdir -p "$keep/base" "$keep/course"
mount --bind "$base" "$keep/base"
mount --bind "$course" "$keep/course"
if [ -n "$closed" ]; then
    mount -t tmpfs -o mode=755 none "$closed"
    mkdir -p "$base" "$course"
fi
mount --bind "$keep/base" "$base"
mount --bind "$keep/course" "$course"
mount -o remount,bind,ro "$course"
cd "$course"
exec setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
"""
# Starts a server, ends it when it says that it runs, or after two minutes, and shows what it has said.
UNTIL_IT_RUNS = """
"$@" > "$TMPDIR/log" 2>&1 &
for _ in $(seq 240); do
    grep -q 'is running at' "$TMPDIR/log" && break
    sleep 0.5
done
kill $!
wait
cat "$TMPDIR/log"
"""
AS_USER = ("unshare", "--mount", "sh", "-c", SCRIPT, "sh")


@pytest.fixture
def homes() -> Iterator[list[Path]]:
    """A home for each user, in a folder that they can reach."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        homes = [Path(folder) / f"user {number}" for number in range(USERS)]
        for number, home in enumerate(homes):
            home.mkdir(0o700)
            os.chown(home, USER + number, USER + number)
        yield homes


@pytest.fixture
def home(homes: list[Path]) -> Path:
    return homes[0]


def run(root: Path, home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the course, as the user of that home, as if no `make` stood above it."""
    left_out = ("XDG_CACHE_HOME", "DISTLAB_RUN", "DISTLAB_DATA", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    variables = {name: value for name, value in os.environ.items() if name not in left_out}
    base, user = Path(sys.base_prefix), USER + int(home.name.split()[-1])
    closed = [folder for folder in reversed(base.parents) if not folder.stat().st_mode & 0o001]
    with tempfile.TemporaryDirectory() as keep:
        return subprocess.run(
            [*AS_USER, str(root), str(base), str(closed[0]) if closed else "", keep, str(user), *command],
            env=variables | {"HOME": str(home), "USER": f"user{user}"},
            capture_output=True,
            text=True,
            timeout=600,
        )


@pytest.fixture(autouse=True)
def needs_mounts(root: Path, homes: list[Path]) -> Iterator[None]:
    if os.geteuid() or not shutil.which("setpriv") or run(root, homes[0], sys.executable, "-c", "").returncode:
        pytest.skip("this user may not mount, or others may not come to the course's folder")
    assert run(root, homes[0], "touch", "written").returncode == 1
    yield
    ours = range(USER, USER + USERS)
    assert not [process.info for process in psutil.process_iter(["uids", "cmdline"]) if process.uids().real in ours]


def test_set_up_finds_the_environment_whole_and_says_nothing(root: Path, home: Path) -> None:
    if not (root / ".venv" / "ready").exists():
        pytest.skip("the tests do not run in the environment that make has made")
    done = run(root, home, "make", "setup")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.long
def test_results_go_to_the_users_own_folder_which_is_named(root: Path, home: Path) -> None:
    done = run(root, home, sys.executable, "-m", "course_tools.cli", "execute", "--only", "01", "--no-site")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"This folder cannot be written to: results go to {home / 'distlab-build'}." in done.stdout
    report = json.loads((home / "distlab-build" / "report.json").read_text())
    assert [row["status"] for row in report["notebooks"]] == ["ok"]


def test_a_lab_is_checked(root: Path, home: Path) -> None:
    done = run(root, home, sys.executable, "-m", "course_tools.cli", "check", "07")
    assert "0 of 18 points" in done.stdout, done.stderr


def test_a_program_is_launched(root: Path, home: Path) -> None:
    program = home / "program.py"
    program.write_text("from mpi4py.MPI import COMM_WORLD as ranks; print('rank', ranks.rank)")
    program.chmod(0o644)
    done = run(root, home, sys.executable, "-m", "course_tools.cli", "launch", "--with", "mpirun", str(program))
    assert done.returncode == 0, done.stderr
    assert "[rank 0] rank 0" in done.stdout and "[rank 1] rank 1" in done.stdout


def test_a_copy_of_notebooks_and_labs_is_made_for_the_user(root: Path, home: Path) -> None:
    done = run(root, home, sys.executable, "-m", "course_tools.cli", "lab", "--fresh", "07")
    copy = home / "distlab-work"
    assert f"This folder cannot be written to: your working copy goes to {copy}." in done.stdout, done.stderr
    assert len(list(copy.glob("notebooks/*.ipynb"))) == len(list(root.glob("notebooks/*.ipynb")))
    done = run(root, home, sys.executable, "-m", "course_tools.cli", "check", "07")
    assert done.stdout.startswith(str(copy / "labs")), done.stderr


def test_the_copy_is_brought_up_to_date_for_another_server(root: Path, home: Path) -> None:
    done = run(root, home, sys.executable, "-m", "course_tools.cli", "lab", "--copy-only")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(f"Your working copy is {home / 'distlab-work'}")
    assert (home / "distlab-work" / "notebooks" / "00_start_here.ipynb").exists()


@pytest.mark.long
def test_pages_and_labs_to_hand_out_go_to_the_users_own_folder(root: Path, home: Path) -> None:
    command = (sys.executable, "-m", "course_tools.cli")
    for part, index in (("pages", "html/00_start_here.html"), ("release", "release/labs.zip")):
        done = run(root, home, *command, part)
        assert done.returncode == 0, done.stderr
        assert (home / "distlab-build" / index).exists(), done.stdout


def test_a_teaching_assistant_grades_into_a_folder_of_their_own(root: Path, home: Path) -> None:
    lab = home / "in" / "alice" / "06_collectives_and_ring_all_reduce"
    shutil.copytree(root / "labs" / lab.name, lab)
    command = (sys.executable, "-m", "course_tools.cli", "grade", str(home / "in"), "--only", "06", "--weak")
    for kept in (0, 1):
        done = run(root, home, *command)
        assert f"This folder cannot be written to: the grades go to {home / 'distlab-build'}." in done.stdout, (
            done.stderr
        )
        assert done.stdout.count("The grades of the run before are kept in") == kept
        assert str(home / "distlab-build" / "grades" / "grades.csv") in done.stdout
        assert "alice,06_collectives" in (home / "distlab-build" / "grades" / "grades.csv").read_text()


def test_what_only_the_owner_can_install_is_one_sentence(root: Path, home: Path) -> None:
    done = run(root, home, sys.executable, "-m", "course_tools.cli", "setup-frameworks", "mxnet")
    place = root / ".venv-mxnet"
    owner = "who owns the course runs the same command in it once."
    assert (done.returncode, done.stdout) == (1, f"{place} cannot be written to by you; {owner}\n"), done.stderr
    done = run(root, home, sys.executable, "-m", "course_tools.cli", "setup", "--retry")
    assert done.returncode == 1
    stays = "cannot be written to by you, so that the Horovod that is there stays as it is.\n"
    assert done.stdout.endswith(stays) or launch.horovod_problem(), done.stdout


@pytest.mark.parametrize(("command", "status"), [("execute --only 00 --no-site", 2), ("lab", 2), ("doctor", 1)])
def test_a_shell_that_allows_few_processes_is_named(root: Path, home: Path, command: str, status: int) -> None:
    done = run(root, home, "bash", "-c", f"ulimit -u 40 && exec {sys.executable} -m course_tools.cli {command}")
    assert done.returncode == status
    said = done.stdout + done.stderr
    assert "This shell allows 40 processes and threads (ulimit -u), and the course needs 512" in said
    assert "Horovod" not in said


def test_a_place_that_is_somebody_elses_is_one_sentence(root: Path, home: Path) -> None:
    done = run(root, home, sys.executable, "-m", "course_tools.cli", "labs", "--only", "07")
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert "lab.ipynb cannot be read or written by you" in line
    done = run(root, home, "make", "figures")
    assert "You may not write into the folder figures" in done.stdout, done.stderr


def test_jupyterlab_starts_without_a_home(root: Path, home: Path) -> None:
    """As for a user without a name in a container, whose home is /."""
    options = ("HOME=/", f"TMPDIR={home}", "BROWSER=true")
    command = ("sh", "-c", UNTIL_IT_RUNS, "sh", sys.executable, "-m", "course_tools.cli", "lab")
    done = run(root, home, "env", *options, *command)
    assert "is running at" in done.stdout, done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.long
def test_the_doctor_reports(root: Path, home: Path) -> None:
    done = run(root, home, sys.executable, "-m", "course_tools.cli", "doctor")
    assert done.returncode == 0 and "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr


def test_many_users_work_at_once(root: Path, homes: list[Path]) -> None:
    """Each launches a program of two ranks and has a lab checked."""

    def work(home: Path) -> tuple[str, str]:
        program = home / "program.py"
        program.write_text("from mpi4py.MPI import COMM_WORLD as ranks; print('rank', ranks.rank, 'of', ranks.size)")
        program.chmod(0o644)
        command = (sys.executable, "-m", "course_tools.cli")
        launched = run(root, home, *command, "launch", "--with", "mpirun", str(program))
        checked = run(root, home, *command, "check", "07")
        return launched.stdout + launched.stderr, checked.stdout + checked.stderr

    with ThreadPoolExecutor(min(len(homes), 6)) as pool:
        results = list(pool.map(work, homes))
    for launched, checked in results:
        assert "[rank 0] rank 0 of 2" in launched and "[rank 1] rank 1 of 2" in launched, launched
        assert "0 of 18 points" in checked, checked


@pytest.mark.long
@pytest.mark.parametrize("variables", [["HOME=/nowhere"], ["-u", "HOME"]], ids=["missing", "not set"])
def test_without_a_home_results_go_to_the_temporary_folder(root: Path, home: Path, variables: list[str]) -> None:
    """As in a container whose user has no name."""
    options = [*variables, f"TMPDIR={home}"]
    command = (sys.executable, "-m", "course_tools.cli", "execute", "--only", "01", "--no-site")
    done = run(root, home, "env", *options, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"results go to {home}/distlab-" in done.stdout
    done = run(root, home, "env", *options, sys.executable, "-m", "course_tools.cli", "check", "07")
    assert "0 of 18 points" in done.stdout, done.stderr
