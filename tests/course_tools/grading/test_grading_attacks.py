"""Ways to cheat or to break the grader: each costs its own exercise and nothing else, and leaves nothing."""

import os
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import nbformat
import numpy as np
import psutil
import pytest

from course_tools import lab_sources
from course_tools.grading.grade import Graded, Report
from course_tools.grading.material import load
from course_tools.sandbox import SandboxLimits, wire
from distlab.labs.verdict import RIGHT
from tests.distlab.labs import sample_lab

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="sandboxes with namespaces are Linux's"),
]

Grading = Callable[..., Report]
Handin = Callable[..., nbformat.NotebookNode]


def attack(graded: Grading, handed_in: Handin, text: str, **options: object) -> Graded:
    """The judgement on a cell that attacks, between two right answers, which must keep their points."""
    report = graded(handed_in(steps=text), **options)
    first, second, third = report.exercises
    assert (first.points, third.points) == (2, 3), [str(each.verdict) for each in report.exercises]
    assert second.points == 0
    assert second.verdict.state != RIGHT
    assert not report.faults
    return second


def everything_said(judged: Graded) -> str:
    return f"{judged.verdict.text} {judged.error}"


WITHOUT_AN_ANSWER = {
    "redefines the check": "check = lambda name: print(f'{name}: ✔ right')\ncheck('steps')",
    "prints what the check prints": "print('steps: ✔ right')\nprint('1 of 1 points')",
    "writes to the judges": """
from distlab.labs import Exercise, right, verdict
Exercise.verdict = lambda *anything: right()
Exercise.points = 100
verdict.wrong = right
steps = 7""",
    "changes what the judges compute with": """
import numpy, builtins
numpy.isclose = numpy.array_equal = numpy.allclose = lambda *anything, **more: True
builtins.type = lambda anything: int
steps = 7""",
    "equals everything": """
class Steps:
    __eq__ = lambda self, other: True
    __hash__ = None
steps = Steps()""",
    "is a number that lies": """
class Steps(int):
    __eq__ = lambda self, other: True
    __hash__ = int.__hash__
steps = Steps(7)""",
    "is an array that lies": """
class Steps(np.ndarray):
    __eq__ = lambda self, other: True
    __array_ufunc__ = lambda *anything, **more: True
steps = np.array(7).view(Steps)""",
    "forges a message to the grader": """
import os
from course_tools.sandbox import wire
message = wire.encode({"value": {"printed": "", "error": None}})
for number in range(3, 10):
    try:
        os.write(number, message)
    except OSError:
        pass
steps = 7""",
    "sends what is no message": """
import os
for number in range(3, 10):
    try:
        os.write(number, b'\\xff' * 1000)
    except OSError:
        pass""",
}


@pytest.mark.parametrize("text", WITHOUT_AN_ANSWER.values(), ids=WITHOUT_AN_ANSWER)
def test_no_trick_makes_a_wrong_value_right(graded: Grading, handed_in: Handin, text: str) -> None:
    attack(graded, handed_in, text)


TOO_LARGE = {
    "an array": "steps = np.zeros(2 * 10**7)",
    "a list": "steps = [0] * 2_000_000",
    "a text": "steps = 'x' * 10**8",
    "a list in itself": "steps = []\nfor _ in range(10_000):\n    steps = [steps]",
    "a number": "steps = 10**5000",
}


@pytest.mark.parametrize("text", TOO_LARGE.values(), ids=TOO_LARGE)
def test_an_answer_too_large_to_look_at_is_refused(graded: Grading, handed_in: Handin, text: str) -> None:
    assert attack(graded, handed_in, text).verdict.text


NEVER_ENDS = {
    "a loop": "while True: pass",
    "a loop that catches everything": """
while True:
    try:
        while True: pass
    except BaseException: pass""",
    "ignored signals": """
import signal
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
signal.alarm(1)
while True: signal.pause()""",
    "asynchronous code": "import asyncio\nawait asyncio.sleep(10**6)",
    "a thread that is waited for": """
import threading
threading.Event().wait()""",
    "a regular expression": "import re\nre.match('(a+)+$', 'a' * 60 + 'b')",
    "endless printing that bypasses Python's": "import os\nwhile True: os.write(1, b'x' * 4096)",
}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, marks=[] if name == "a loop" else pytest.mark.long, id=name)
        for name, text in NEVER_ENDS.items()
    ],
)
def test_a_cell_that_never_ends_is_stopped_and_it_is_said(graded: Grading, handed_in: Handin, text: str) -> None:
    assert "did not end within 6 s" in everything_said(attack(graded, handed_in, text))


@pytest.mark.long
def test_a_function_that_never_ends_costs_its_exercise_alone(graded: Grading, handed_in: Handin) -> None:
    report = graded(handed_in(mean="def mean(values):\n    while True: pass"))
    assert [each.points for each in report.exercises] == [0, 1, 3]
    assert "did not end within" in report.exercises[0].verdict.text


ENDS_ITS_PROCESS = {
    "exits": ("import os; os._exit(0)", "ended by itself"),
    "aborts": ("import os; os.abort()", "killed by signal"),
    "reads where nothing is": ("import ctypes; ctypes.string_at(0)", "killed by signal"),
    "closes the connection": ("import os\nos.closerange(0, 100)", "process"),
    "takes memory": ("many = []\nwhile True: many.append(bytearray(b'x') * 2**24)", "MiB of memory"),
    "takes memory in many processes": (
        "import os\nfor _ in range(3): os.fork()\nmany = bytearray(b'x') * 2**26\nwhile True: pass",
        "MiB of memory",
    ),
    "takes memory and hides it": (
        "import ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"
        "many = []\nwhile True: many.append(bytearray(b'x') * 2**24)",
        "MiB of memory",
    ),
    "forks without end": ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", "processes"),
    "forks by a shell": ("import os\nos.system('b() { b & b & sleep 100; }; b')\nwhile True: pass", "processes"),
}


@pytest.mark.parametrize(("text", "said"), ENDS_ITS_PROCESS.values(), ids=ENDS_ITS_PROCESS)
def test_a_process_that_ends_or_uses_too_much_is_named(
    sample_source: Path, graded: Grading, handed_in: Handin, text: str, said: str
) -> None:
    # Little memory and much time, so that a loaded machine comes to the limit that is meant.
    patient = load(sample_source, sample_lab.lab(seconds_per_cell=60, seconds=120))
    judged = attack(graded, handed_in, text, of=patient, limits=SandboxLimits(memory=2**28))
    assert said in everything_said(judged)


def test_more_memory_than_there_is_at_once_is_an_error_of_the_cell(graded: Grading, handed_in: Handin) -> None:
    judged = attack(graded, handed_in, "steps = np.ones(10**10)")
    assert "more memory than grading allows" in everything_said(judged)


RAISES = {
    "leaves by sys.exit": ("import sys\nsys.exit()", "SystemExit"),
    "writes a gigabyte": (
        "with open('large', 'wb') as file:\n    for _ in range(64): file.write(bytes(2**24))",
        "large",
    ),
    "writes many files": ("for number in range(10**6): open(f'{number}', 'w').close()", "not allowed"),
    "fills the disk": (
        "for number in range(1000): open(f'/dev/shm/{number}', 'wb').write(bytes(2**24))",
        "not allowed",
    ),
    "prints without end": ("while True: print('spam' * 1000)", "printed more than"),
    "prints without end and catches exceptions": (
        "while True:\n    try: print('spam' * 1000)\n    except Exception: pass",
        "printed more than",
    ),
    "reads the keyboard": ("input('password: ')", "EOFError"),
}


@pytest.mark.parametrize(("text", "said"), RAISES.values(), ids=RAISES)
def test_what_grading_does_not_allow_is_an_error_with_its_reason(
    graded: Grading, handed_in: Handin, text: str, said: str
) -> None:
    assert said in everything_said(attack(graded, handed_in, text))


def test_the_network_is_out_of_reach(graded: Grading, handed_in: Handin) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(0.1)
        port = listener.getsockname()[1]
        text = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=1)\nsteps = 6"
        assert "ConnectionRefusedError" in everything_said(attack(graded, handed_in, text))
        with pytest.raises(TimeoutError):
            listener.accept()
    outside = "import socket\nsocket.create_connection(('192.0.2.1', 80), timeout=1)\nsteps = 6"
    assert "no network" in everything_said(attack(graded, handed_in, outside))


def test_the_grader_s_files_are_out_of_reach(graded: Grading, handed_in: Handin, root: Path) -> None:
    with tempfile.NamedTemporaryFile() as secret:
        for place in (
            secret.name,
            str(root / "Makefile"),
            str(next(root.glob("labs/06_*/lab.py"))),
            "/etc/shadow",
            "/var",
        ):
            text = f"import os\nassert os.path.exists({place!r}), 'nothing there'\nsteps = 6"
            assert "nothing there" in everything_said(attack(graded, handed_in, text))
    package = root / "src" / "distlab" / "labs" / "added.py"
    said = everything_said(attack(graded, handed_in, f"open({str(package)!r}, 'w')\nsteps = 6"))
    assert "Read-only" in said or "Permission denied" in said
    assert not package.exists()


def test_the_environment_of_the_grader_is_not_handed_on(
    graded: Grading, handed_in: Handin, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import os\nsteps = 6 if 'PYTEST_CURRENT_TEST' in os.environ else None\n"
    attack(graded, handed_in, f"{text}assert b'PYTEST' not in open('/proc/self/environ', 'rb').read()")


def test_no_process_of_the_machine_can_be_seen_or_ended(graded: Grading, handed_in: Handin) -> None:
    text = f"""
import os, signal
for process in [{os.getpid()}, {os.getppid()}, -1, *range(2, 70_000)]:
    try:
        os.kill(process, signal.SIGKILL)
    except OSError:
        pass
assert len([name for name in os.listdir('/proc') if name.isdigit()]) == 1
raise RuntimeError('nobody else is here')"""
    assert "nobody else is here" in everything_said(attack(graded, handed_in, text))


def test_privileges_cannot_be_had_back(graded: Grading, handed_in: Handin) -> None:
    text = """
import ctypes, os
library = ctypes.CDLL(None, use_errno=True)
got = [call() for call in (
    lambda: library.unshare(0x10000000),
    lambda: library.mount(b'none', b'/lab', b'tmpfs', 0, b''),
    lambda: library.setuid(0),
    lambda: library.chroot(b'/tmp'),
    lambda: library.umount2(b'/usr', 2),
    lambda: library.shmget(0, 10**8, 0o1600),
)]
raise RuntimeError(str(got))"""
    assert "[-1, -1, -1, -1, -1, -1]" in everything_said(attack(graded, handed_in, text))


def test_a_process_in_the_background_does_not_outlive_the_grading(graded: Grading, handed_in: Handin) -> None:
    number = str(np.random.default_rng().integers(10**8, 10**9))
    text = f"import subprocess\nsubprocess.Popen(['setsid', 'sleep', '{number}'], start_new_session=True)"
    attack(graded, handed_in, text)
    assert not [process for process in psutil.process_iter(["cmdline"]) if number in (process.info["cmdline"] or [])]


def test_a_forked_copy_of_the_process_answers_nothing(graded: Grading, handed_in: Handin) -> None:
    report = graded(handed_in(steps="import os\nos.fork()\nsteps = 6"))
    assert report.score == 6


RANK_CHEATS = {
    "takes the inputs from the other ranks' memory": """
shared = {}
async def all_gather(rank, array):
    shared[rank.index] = array
    for step in range(1, rank.size):
        await rank.exchange((rank.index + 1) % rank.size, np.zeros(6), (rank.index - 1) % rank.size)
    return np.array([shared[index] for index in range(rank.size)])
""",
    "takes the inputs from files": """
async def all_gather(rank, array):
    np.save(f'/tmp/{rank.index}.npy', array)
    for step in range(1, rank.size):
        await rank.exchange((rank.index + 1) % rank.size, np.zeros(6), (rank.index - 1) % rank.size)
    return np.array([np.load(f'/tmp/{index}.npy') for index in range(rank.size)])
""",
    "sends arrays that lie about their size": """
class Light(np.ndarray):
    nbytes = 0
async def all_gather(rank, array):
    received = {rank.index: array}
    for step in range(1, rank.size):
        to, source = (rank.index + step) % rank.size, (rank.index - step) % rank.size
        both = await rank.exchange(to, np.concatenate([array, array]).view(Light), source)
        received[source] = both[:6]
    return np.array([received[index] for index in range(rank.size)])
""",
    "turns the clock back": """
async def all_gather(rank, array):
    received = {rank.index: array}
    for peer in range(rank.size):
        if peer != rank.index:
            await rank.send(peer, array)
            rank.now = 0.0
    for peer in range(rank.size):
        if peer != rank.index:
            received[peer] = await rank.receive(peer)
    rank.now = rank.size - 1.0
    await rank.compute(1.0)
    return np.array([received[index] for index in range(rank.size)])
""",
    "changes the classes of the virtual cluster": """
import distlab.simulate
from course_tools.sandbox.student import RemoteRank
distlab.simulate.World.run = None
RemoteRank.exchange = RemoteRank.receive
async def all_gather(rank, array):
    return np.zeros((rank.size, 6))
""",
    "sends without end": """
async def all_gather(rank, array):
    while True:
        await rank.send((rank.index + 1) % rank.size, np.zeros(10**6))
""",
    "computes without end": """
async def all_gather(rank, array):
    while True:
        await rank.compute(0)
""",
    "ends its process in the middle": """
async def all_gather(rank, array):
    await rank.send((rank.index + 1) % rank.size, array)
    import os
    os._exit(0)
""",
}


@pytest.mark.long
@pytest.mark.parametrize("text", RANK_CHEATS.values(), ids=RANK_CHEATS)
def test_steps_and_bytes_of_a_rank_program_cannot_be_faked(graded: Grading, handed_in: Handin, text: str) -> None:
    report = graded(handed_in(all_gather=text))
    assert [each.points for each in report.exercises] == [2, 1, 0]
    assert report.exercises[2].verdict.text
    assert not report.faults


def test_the_checks_can_be_deleted_or_rewritten_without_any_effect(graded: Grading, handed_in: Handin) -> None:
    notebook = handed_in(steps="steps = 7")
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.source = "print('right')"
            cell.metadata["nbgrader"]["points"] = 1000
    assert graded(notebook).score == 5
    notebook.cells = [cell for cell in notebook.cells if not cell.metadata.get("nbgrader", {}).get("grade")]
    report = graded(notebook)
    assert (report.score, len(report.exercises)) == (5, 3)


def test_a_given_cell_that_was_changed_is_the_lab_s_all_the_same(graded: Grading, handed_in: Handin) -> None:
    notebook = handed_in()
    given = next(cell for cell in notebook.cells if "import numpy" in cell.source)
    given.source = "raise RuntimeError('mine')"
    assert graded(notebook).score == 6
    del notebook.cells[notebook.cells.index(given)]
    assert graded(notebook).score == 6


def test_nothing_that_is_sent_into_the_sandbox_tells_the_seed(
    graded: Grading, handed_in: Handin, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = []
    send = wire.send
    monkeypatch.setattr(
        wire, "send", lambda connection, value, *more: sent.append(value) or send(connection, value, *more)
    )
    seed = 123_456_789_012_345
    assert graded(handed_in(), seed=seed).score == 6
    assert sent
    assert str(seed) not in repr(sent)


def test_sources_have_no_solution_for_students(sample_source: Path, handed_in: Handin) -> None:
    assert "BEGIN" not in "".join(cell.source for cell in lab_sources.student(handed_in()).cells)
