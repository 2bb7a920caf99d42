"""The jail as the grader holds it: rank programs as on the virtual cluster itself, and an end whatever happens."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import distlab
from course_tools.grading import notebook
from course_tools.sandbox import TENSORFLOW, Kind, SandboxedWork, Setting, jail, protections
from distlab import simulate
from distlab.labs import Answer, NotDone, OwnAnswer, registry
from distlab.labs.answer_errors import Gone, TookTooLong
from distlab.runtime.errors import PlainError
from distlab.simulate import Network, World
from tests.course_tools.grading.submitted import wait_for_the_end_of

pytestmark = pytest.mark.slow
NETWORK = Network(latency=1e-6, seconds_per_byte=1e-9, seconds_per_byte_reduced=1e-10)
SECONDS = 300.0

WRONG = {
    "stuck": "return await rank.receive((rank.index + 1) % rank.size)",
    "to_itself": "await rank.send(rank.index, array)",
    "raises": "return {}['missing']",
}
IMPORTS = "import asyncio\nfrom distlab.collectives import ring_all_reduce"
PROGRAMS = """
ring = ring_all_reduce  # each jail runs the cells in their order

async def any_order(rank, array):
    if rank.index:
        await rank.compute(1e-6 * (rank.size - rank.index))
        await rank.send(array=array, to=0)
        return rank.now
    return [await rank.receive_any() for _ in range(1, rank.size)]

def no_coroutine(rank, array):
    return array

async def untouched(rank, array): ...

""" + "".join(f"async def {name}(rank, array):\n    {body}\n" for name, body in WRONG.items())


@pytest.fixture(scope="module")
def both(kind: Kind) -> Iterator[tuple[Answer, Answer]]:
    """The same programs as an answer of this process and as one in a jail."""
    namespace: dict[str, object] = {}
    with SandboxedWork(Setting(kind=kind)) as work:
        for cell in (IMPORTS, PROGRAMS):
            exec(cell, namespace)
            assert work.run_cell(cell, SECONDS).error is None
        yield OwnAnswer(namespace), work.answer(600)


def inputs(size: int) -> list[np.ndarray]:
    return [np.random.default_rng(rank).normal(size=7) for rank in range(size)]


@pytest.mark.parametrize(("name", "size"), [("ring", 1), ("ring", 5), ("any_order", 11)])
def test_results_times_and_messages_are_those_of_a_run_in_one_process(
    both: tuple[Answer, Answer], name: str, size: int
) -> None:
    own, boxed = (answer.run(name, World(size, NETWORK), inputs(size)) for answer in both)
    assert np.array_equal(own.events.columns, boxed.events.columns)
    assert np.array_equal(own.finished, boxed.finished)
    assert repr(own.results) == repr(boxed.results)


@pytest.mark.parametrize("name", [*WRONG, "no_coroutine", "untouched", "not_there"])
def test_a_mistake_gives_the_same_error_with_the_same_words(both: tuple[Answer, Answer], name: str) -> None:
    errors = []
    for answer in both:
        with pytest.raises((simulate.SimulationError, NotDone)) as caught:
            answer.run(name, World(3, NETWORK), inputs(3))
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]
    assert (errors[0][0] is NotDone) == (name in ("untouched", "not_there"))


def test_a_program_of_two_ranks_runs_under_mpi_in_the_jail(kind: Kind) -> None:
    program = "from mpi4py import MPI\nprint(MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1))\n"
    start = "from distlab import launch\nlaunch.mpirun('program.py', ranks=2, seconds=500)"
    with SandboxedWork(Setting(TENSORFLOW, files={"program.py": program.encode()}, kind=kind)) as work:
        run = work.run_cell(start, 600)
    assert run.error is None, run
    assert sorted(run.printed.splitlines())[-2:] == ["[rank 0] 3", "[rank 1] 3"]


CLOSED = os.getuid() == 0 and not all(folder.stat().st_mode & 1 for folder in Path(__file__).parents)


@pytest.mark.skipif(CLOSED, reason="root's weak jail runs as nobody, who may not pass a folder above this course")
def test_without_a_full_sandbox_grading_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jail, "candidates", lambda: [Kind.WEAK])
    with pytest.raises(PlainError, match=r"Students' code cannot be isolated on this machine .*--weak"):
        protections.strongest(accept_weak=False)
    kind, said = protections.strongest(accept_weak=True)
    assert kind is Kind.WEAK and "NOT blocked here: the network, the files" in said


LIMITED = {
    "while True: pass": "did not end",
    "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass": "processes|memory",
    "many = []\nwhile True: many.append(bytearray(b'x') * 2**26)": "emory",
    "import os; os._exit(4)": "exit status 4",
    "open('x', 'wb').write(bytes(2**26))": "OSError",
}


@pytest.mark.skipif(sys.platform != "linux", reason="jails are Linux's")
@pytest.mark.skipif(CLOSED, reason="root's weak jail runs as nobody, who may not pass a folder above this course")
def test_also_in_the_weak_jail_the_limits_hold() -> None:
    with SandboxedWork(Setting(kind=Kind.WEAK)) as work:
        for text, words in LIMITED.items():
            try:
                outcome = str(work.run_cell(text, 3.0 if "pass" in text else SECONDS).error)
            except (Gone, TookTooLong) as error:
                outcome = str(error)
            assert any(word in outcome for word in words.split("|")), (words, outcome)


# Python and the course, at places that all users may pass.
AS_USER = """
set -e
place=/mnt; mount -t tmpfs -o mode=755 tmpfs $place; n=0
for folder in {folders}; do n=$((n+1)); mkdir $place/$n; mount --rbind $folder $place/$n; done
n=0; for top in {tops}; do mount -t tmpfs -o mode=755 tmpfs $top; done
for folder in {folders}; do n=$((n+1)); mkdir -p $folder; mount --rbind $place/$n $folder; done
cd /; exec setpriv --reuid=12345 --regid=12345 --clear-groups env HOME=/ TMPDIR=/dev/shm {python} -c '{code}'
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize("which", [Kind.BUBBLEWRAP, Kind.UTIL_LINUX])
def test_an_ordinary_user_has_the_same_jail(which: Kind, root: Path) -> None:
    if which is Kind.BUBBLEWRAP and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    code = f'from course_tools.sandbox import Kind, protections; print(protections.reached_in(Kind["{which.name}"]))'
    folders = [sys.base_prefix, sys.prefix, str(Path(distlab.__file__).parents[1]), str(root / "notebooks")]
    tops = sorted({f"/{Path(folder).parts[1]}" for folder in folders} - {"/usr", "/opt"})
    script = AS_USER.format(folders=" ".join(folders), tops=" ".join(tops), python=sys.executable, code=code)
    run = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False)
    if "SandboxFailed" in run.stderr and "ermi" in run.stderr:
        pytest.skip(run.stderr.splitlines()[-1])
    assert run.stdout.strip() == "[]", run.stderr


GRADER = """
import sys
from course_tools.sandbox import Kind, SandboxedWork, Setting
with SandboxedWork(Setting(kind=Kind[sys.argv[2]])) as work:
    work.run_cell(f"import subprocess; subprocess.Popen(['sleep', '{sys.argv[1]}'])", 300)
    print("started", flush=True)
    work.run_cell("while True: pass", 600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="jails are Linux's")
def test_when_the_grader_is_killed_nothing_of_a_jail_is_left(kind: Kind) -> None:
    mark = f"{10**8 + os.getpid()}"
    command = [sys.executable, "-c", GRADER, mark, kind.name]
    grader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    with grader:
        assert grader.stdout is not None and grader.stdout.readline() == "started\n"
        grader.kill()
        grader.wait(timeout=SECONDS)
    wait_for_the_end_of(mark)


SEARCH = """
import os
def found(paths):
    there = filter(os.path.exists, paths)
    return [path for path in there if (os.listdir(path) if os.path.isdir(path) else os.path.getsize(path))]
"""


@pytest.mark.parametrize("number", ["06", "07", "12"])
def test_judges_solutions_and_what_a_lab_asks_for_are_not_in_its_jail(number: str, root: Path, kind: Kind) -> None:
    if kind is Kind.WEAK:
        pytest.skip("without namespaces nothing is hidden; the report of grading says so")
    lab = notebook.load(next((root / "labs").glob(f"{number}_*/lab.py")))
    setting = lab.setting(kind, lab.steps)[1]
    places = [file for file in root.glob("labs/*/*.py") if file.stem not in registry.NEXT_TO_STUDENTS]
    places += [*root.glob("labs/*/solution.ipynb"), *root.glob("labs/*/__pycache__"), *root.glob("labs/*.py")]
    places += [root / "tests" / "conftest.py", *map(resources.files, lab.lab.solved_in)]
    opens = f"from distlab import labs\nlab = labs.open('{number}')\nlab.check('x')\nassert lab.points('x') == 0"
    with SandboxedWork(setting) as work:
        for text in (SEARCH, opens):
            assert work.run_cell(text, SECONDS).error is None
        assert work.answer(SECONDS).call("found", [*map(str, places)]) == []
        for step in lab.steps:
            if step.role is notebook.Role.GIVEN:
                assert work.run_cell(step.text, SECONDS).error is None
