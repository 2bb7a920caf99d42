"""What a student's code may use and call: each limit holds for all processes of a student, and on a busy machine."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest

from course_tools.grading import grade, material
from course_tools.grading.grade import Report
from course_tools.grading.material import Material
from course_tools.sandbox import SandboxLimits, socket_memory, student_time, system_call_filter
from distlab import devices
from distlab.labs import Answer, Picture, Verdict, wrong
from tests.distlab.labs import sample_lab
from tests.distlab.labs.sample_lab import points

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="sandboxes with namespaces are Linux's"),
]

Grading = Callable[..., Report]
Handin = Callable[..., nbformat.NotebookNode]

LIBRARY = "import ctypes, os, signal, socket, struct\nlibrary = ctypes.CDLL(None, use_errno=True)\n"
REFUSED = {
    "being traced, then stopped": "library.ptrace(0, 0, 0, 0), os.kill(os.getpid(), signal.SIGUSR1)",
    "a key ring": "library.syscall(250, 0, -3, 1, 0, 0),",
    "a key": "library.syscall(248, b'user', b'x', b'y', 1, -3),",
    "watching files": "library.inotify_init(),",
    "files in memory without a name": "library.memfd_create(b'x', 0),",
    "sockets to the machine below": "library.socket(40, 1, 0),",
    "sockets for packets": "library.socket(17, 3, 0),",
    "a protocol that the kernel loads": "library.socket(2, 1, 132),",
    "messages between programs by the kernel": "library.socket(16, 3, 2),",
    "pairs of sockets of another kind": "library.socketpair(30, 1, 0, (ctypes.c_int * 2)()),",
    "memory that a pipe keeps": "library.vmsplice(os.pipe()[1], 0, 0, 0),",
    "the kernel's rings": "library.syscall(425, 8, 0),",
    "a lock of a file": "library.flock(os.open(os.__file__, 0), 1),",
    "a lock of a part of a file": "library.fcntl(os.open(os.__file__, 0), 6, struct.pack('hhqqi4x', *[0] * 5)),",
    "a lock of an open file": "library.fcntl(os.open(os.__file__, 0), 37, struct.pack('hhqqi4x', *[0] * 5)),",
    "watching a folder": "library.fcntl(os.open('/usr', 0), 1026, 1),",
}


@pytest.mark.skipif(not system_call_filter.is_known(), reason="the system calls of this machine are not known")
@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_system_calls_that_pass_the_limits_are_refused(graded: Grading, handed_in: Handin, call: str) -> None:
    report = graded(handed_in(steps=f"{LIBRARY}raise RuntimeError(({call})[0])"))
    assert points(report) == {"mean": 2, "steps": 0, "all_gather": 3}
    assert "RuntimeError: -1" in report.exercises[1].verdict.text


def test_processes_that_have_ended_do_not_count(graded: Grading, handed_in: Handin) -> None:
    ended = "import os\nfor _ in range(60):\n    if os.fork() == 0: os._exit(0)\nsteps = 6"
    assert graded(handed_in(steps=ended)).score == 6


PAGE_TABLES = """
import mmap
reserved = mmap.mmap(-1, 2**40, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ)
for place in range(0, 2**40, 2**21): reserved[place]
"""


def test_tables_of_memory_that_is_only_reserved_count(sample_source: Path, graded: Grading, handed_in: Handin) -> None:
    patient = material.load(sample_source, sample_lab.lab(seconds_per_cell=60, seconds=120))
    limits = SandboxLimits(memory=2**28, address_space=None)  # as where TensorFlow reserves what it never uses
    report = graded(handed_in(steps=f"{PAGE_TABLES}steps = 6"), patient, limits=limits)
    assert points(report) == {"mean": 2, "steps": 0, "all_gather": 3}
    assert "more than 256 MiB of memory" in report.exercises[1].error


FILLED = {
    "streams": """
import socket
kept = []
try:
    while True:
        for end in (pair := socket.socketpair()):
            end.setblocking(False)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**22)
            try:
                while True: end.send(bytes(65536))
            except BlockingIOError: pass
        kept += pair
except OSError: pass
""",
    "connections that nobody accepts": """
import socket
kept = []
listener = socket.create_server(("127.0.0.1", 0), backlog=200)
for _ in range(200):
    end = socket.create_connection(listener.getsockname())
    end.setblocking(False)
    try:
        while True: end.send(bytes(65536))
    except BlockingIOError: pass
    end.close()
""",
}


@pytest.mark.skipif(not socket_memory.is_told(), reason="the kernel does not list its sockets")
@pytest.mark.parametrize("fills", FILLED.values(), ids=FILLED)
def test_what_waits_in_sockets_counts(sample_source: Path, graded: Grading, handed_in: Handin, fills: str) -> None:
    patient = material.load(sample_source, sample_lab.lab(seconds_per_cell=60, seconds=120))
    text = f"import os\nfor _ in range(3): os.fork()\n{fills}\nimport time\ntime.sleep(30)\nsteps = 6"
    report = graded(handed_in(steps=text), patient, limits=SandboxLimits(memory=2**28))
    assert points(report) == {"mean": 2, "steps": 0, "all_gather": 3}
    assert "more than 256 MiB of memory" in report.exercises[1].error


def test_a_socket_keeps_the_size_of_its_buffers(graded: Grading, handed_in: Handin) -> None:
    text = """
import socket
ends = socket.socketpair()
sizes = [(socket.SO_SNDBUF, ends[0]), (socket.SO_RCVBUF, ends[1])]
before = [end.getsockopt(socket.SOL_SOCKET, kind) for kind, end in sizes]
for kind, end in sizes: end.setsockopt(socket.SOL_SOCKET, kind, 2**22)
ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
after = [end.getsockopt(socket.SOL_SOCKET, kind) for kind, end in sizes]
steps = 6 if before == after and ends[0].getsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED) else 0"""
    assert graded(handed_in(steps=text)).score == 6


HOARDS = """
async def all_gather(rank, array):
    kept.append(bytearray(b"x") * 200_000_000)
    for _ in range(100):
        await rank.exchange((rank.index + 1) % rank.size, array, (rank.index - 1) % rank.size)
        time.sleep(0.02)
    return array
import time
kept = []
"""


def test_the_ranks_of_a_student_share_one_limit_of_memory(graded: Grading, handed_in: Handin) -> None:
    report = graded(handed_in(all_gather=HOARDS), limits=SandboxLimits(memory=300 * 2**20))
    assert points(report) == {"mean": 2, "steps": 1, "all_gather": 0}
    assert "more than 300 MiB of memory" in report.exercises[2].verdict.text


@contextmanager
def busy_machine() -> Iterator[None]:
    """Several processes for each processor that never wait."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(5 * devices.cores())]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


WORKS = "    until = time.process_time() + 1.5\n    while time.process_time() < until: pass\n"


def test_a_busy_machine_uses_up_nobody_s_time(sample_source: Path, graded: Grading, handed_in: Handin) -> None:
    works = f"import time\n{sample_lab.ANSWERS['mean']}    ".replace("    return", f"{WORKS}    return")
    short = material.load(sample_source, sample_lab.lab(seconds_per_cell=3, seconds=12))
    with busy_machine():
        report = graded(handed_in(mean=works), short)
    assert (report.score, report.remarks, report.troubles) == (6, [], []), [each.verdict for each in report.exercises]


def test_what_waits_too_long_for_the_machine_is_a_trouble_and_no_verdict(
    graded: Grading, handed_in: Handin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(student_time, "_TIMES_ON_THE_WALL", 0)
    monkeypatch.setattr(student_time, "_LEAST_ON_THE_WALL", 1.0)
    report = graded(handed_in(steps="import time\ntime.sleep(5)\nsteps = 6"))
    assert set(report.troubles) == {"the machine was too busy to let it end"}


SLOW_TO_READ = {
    "a text that makes a regular expression slow": '")" + "\\n" * 60_000\n' + "\n" * 60_000,
    "a chain of names": "a" + ".b" * 400,
    "brackets": "(" * 5_000,
    "a help line in between": "steps?\nnp?\n%%x",
}


@pytest.mark.parametrize("cell", SLOW_TO_READ.values(), ids=SLOW_TO_READ)
def test_a_text_that_is_hard_to_read_costs_the_grader_nothing(graded: Grading, handed_in: Handin, cell: str) -> None:
    made = handed_in(steps=f"steps = 6\n{cell}")
    made.cells.insert(1, nbformat.v4.new_code_cell(cell))
    report = graded(made)
    assert {name: points(report)[name] for name in ("mean", "all_gather")} == {"mean": 2, "all_gather": 3}
    assert report.faults == report.troubles == []


def test_a_verdict_that_quotes_a_huge_answer_is_cut(sample_source: Path, graded: Grading, handed_in: Handin) -> None:
    def judge(answer: Answer, generator: object) -> Verdict:
        return wrong(f"not {answer.call('mean', [1.0])!r}")

    quoting = material.load(sample_source, sample_lab.lab(judge))
    report = graded(handed_in(mean="def mean(values):\n    return '\\x00' * 15_000_000"), quoting)
    assert 1000 < len(report.exercises[0].verdict.text) < 5000


def endless() -> Picture:
    while True:
        pass


DRAWINGS: dict[str, Callable[[], Picture]] = {
    "never ends": endless,
    "takes memory": lambda: Picture("x" * 2**60, ""),
}


@pytest.mark.parametrize("drawing", DRAWINGS.values(), ids=DRAWINGS)
def test_a_drawing_that_cannot_be_made_costs_the_picture_alone(
    sample_source: Path,
    graded: Grading,
    handed_in: Handin,
    monkeypatch: pytest.MonkeyPatch,
    drawing: Callable[[], Picture],
) -> None:
    def judge(answer: Answer, generator: object) -> Verdict:
        return wrong("half of it", 0.5, drawing)

    def give_up(number: int, frame: object) -> None:
        pytest.fail("the drawing goes on")

    monkeypatch.setattr(grade, "_SECONDS_TO_DRAW", 0.5)
    drawn = material.load(sample_source, sample_lab.lab(judge))
    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, 20)
    try:
        report = graded(handed_in(), drawn)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    assert points(report) == {"mean": 1, "steps": 1, "all_gather": 3}
    assert report.exercises[0].picture is None
    assert (report.faults, report.troubles, report.remarks) == ([], [], [])


def test_only_files_that_given_cells_name_are_in_the_sandbox(graded: Grading, handed_in: Handin, root: Path) -> None:
    lab_05 = material.load(next((root / "labs").glob("05_*/lab.py")))
    assert set(lab_05.files) == {"broken_runs.json"}
    report = graded(handed_in(steps="import os\nsteps = 6 if os.listdir() == ['given.py'] else os.listdir()"))
    assert report.score == 6


def test_the_environment_has_nothing_to_load_into_the_next_program(
    graded: Grading, handed_in: Handin, sample: Material
) -> None:
    names = "{'PYTHONPATH', 'LD_PRELOAD', 'PYTHONSTARTUP'}"
    assert graded(handed_in(steps=f"import os\nsteps = 6 - len({names} & set(os.environ))")).score == 6
    assert not {"LD_PRELOAD"} & set(os.environ)
