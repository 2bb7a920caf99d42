"""Ways to cheat or to break the grader: each costs its own exercise and nothing else, and leaves nothing."""

# ruff: noqa: E501  # one line for each case of a table

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from course_tools.grading import grade, notebook
from course_tools.sandbox import wire
from distlab.labs import Answer, Picture, Verdict, registry, wrong
from tests.course_tools.grading.submitted import wait_for_the_end_of
from tests.distlab.labs import sample_lab
from tests.distlab.labs.graded_sample import Grading
from tests.distlab.labs.sample_lab import points

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="jails are Linux's"),
    pytest.mark.usefixtures("isolated"),
]

WRITES_BEFORE = "import os, socket\nfor n in range(3, 10):\n    try: os.write(n, {})\n    except OSError: pass\n"
ANSWERED = "(47).to_bytes(8, 'big') + b'" + '["d","token","","value",["d","printed","","error",null]]' + "'"
LIES = "class Steps(int):\n    __eq__ = lambda self, other: True\n    __hash__ = int.__hash__\nsteps = Steps(7)"
ARRAY_LIES = "class Steps(np.ndarray):\n    __eq__ = lambda self, other: True\nsteps = np.array(7).view(Steps)"
FORGETS = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
DEAF = "import signal\nfor n in set(signal.Signals) - {9, 19}:\n    signal.signal(n, signal.SIG_IGN)\nwhile True: signal.pause()"
KILLS = "import os\nfor n in [{pid}, -1, *range(2, 70_000)]:\n    try: os.kill(n, 9)\n    except OSError: pass\n"
CALLS = "import ctypes\nlibrary = ctypes.CDLL(None)\nraise RuntimeError(library.{})"
LOOKS_AT_JUDGE = f"import importlib\nimportlib.import_module({registry.MODULES['06']!r})"

ATTACKS: dict[str, tuple[str, str]] = {
    # what it says instead of an answer
    "redefines the check": ("check = lambda name: print(f'{name}: ✔ right')\ncheck('steps')", ""),
    "equals everything": ("class Steps:\n    __eq__ = lambda self, other: True\nsteps = Steps()", "Steps"),
    "is a number that lies": (LIES, "count again"),
    "is an array that lies": (ARRAY_LIES, "count again"),
    "is an array too large": ("steps = np.zeros(2 * 10**7)", "larger than"),
    "is a list too long": ("steps = [0] * 2_000_000", "more than"),
    "is a list in itself": ("steps = []\nfor _ in range(10_000):\n    steps = [steps]", "nested"),
    "is a number too long": ("steps = 10**5000", "digits"),
    # judges
    "changes the judges' classes": ("from distlab.labs import Exercise\nExercise.points = 100\nsteps = 7", "count again"),
    "changes their functions": ("from distlab.labs import verdict\nverdict.wrong = verdict.right\nsteps = 7", "checker's own"),
    "changes NumPy": ("np.array_equal = np.isclose = lambda *a, **k: True\nsteps = 7", "checker's own functions"),
    "changes Python": ("import builtins\nbuiltins.isinstance = lambda *a: True\nsteps = 7", ""),
    "imports a judge": (LOOKS_AT_JUDGE, "ModuleNotFoundError"),
    "looks for solutions": ("import os\nassert any(map(os.path.exists, {places!r})), 'none'", "none"),
    # the wire and the seed
    "sends an answer before it is asked": (WRITES_BEFORE.format(ANSWERED) + "steps = 7", ""),
    "sends what is no message": (WRITES_BEFORE.format("b'\\xff' * 1000"), "no answer"),
    "closes the connection": ("import os\nos.closerange(0, 100)", "process"),
    "looks for the seed": ("import gc, sys\nassert '4'.join(['98712365', '']) in repr([*map(repr, gc.get_objects())]), 'none'", "none"),
    "clears what Python has": ("import builtins, sys\nsys.modules.clear()\nbuiltins.__dict__.clear()", ""),
    "raises what has no text": ("raise type('\\ud800', (BaseException,), {'__str__': lambda self: 1 / 0})()", "stopped in line 1"),
    # time
    "never ends and catches everything": (FORGETS, "did not end within 6 s"),
    "is deaf to signals": (DEAF, "did not end within 6 s"),
    "stays in C": ("import re\nre.match('(a+)+$', 'a' * 60 + 'b')", "did not end within 6 s"),
    # memory, files, processes
    "takes memory": ("many = []\nwhile True: many.append(bytearray(b'x') * 2**24)", "emory"),
    "takes it in many processes": ("import os\nfor _ in range(4): os.fork()\nmany = bytearray(b'x') * 2**27\nwhile True: pass", "MiB of memory"),
    "takes it at once": ("steps = np.ones(10**10)", "more memory than grading allows"),
    "writes a large file": ("with open('x', 'wb') as f:\n    for _ in range(64): f.write(bytes(2**24))", "large"),
    "writes many files": ("for n in range(10**6): open(f'{n}', 'w').close()", "not allowed" if os.getuid() == 0 else ""),
    "fills the disk": ("for n in range(1000): open(f'/dev/shm/{n}', 'wb').write(bytes(2**24))", "not allowed"),
    "forks without end": ("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", "processes"),
    "leaves a process behind": ("import subprocess\nsubprocess.Popen(['setsid', 'sleep', '{mark}'])", ""),
    "prints without end": ("while True: print('spam' * 1000)", "emory"),
    "ends its process": ("import os\nos._exit(0)", "ended by itself"),
    "ends it by an error in C": ("import ctypes\nctypes.string_at(0)", "killed by signal"),
    "reads the keyboard": ("input('password: ')", "EOFError"),
    # the machine
    "reaches for its network": ("import socket\nsocket.create_connection(('127.0.0.1', {port}), timeout=1)\nsteps = 6", "refused"),
    "reaches for the internet": ("import socket\nsocket.create_connection(('192.0.2.1', 80), timeout=1)", "no network in grading"),
    "ends its processes": (KILLS + "raise RuntimeError('nobody')", "nobody"),
    "sees its processes": ("import os\nassert len([n for n in os.listdir('/proc') if n.isdigit()]) > 1, 'alone'", "alone"),
    "writes to the library": ("import distlab\nopen(distlab.__file__, 'a')", "PermissionError" if os.getuid() == 0 else "Read-only"),
    "reads the environment": ("assert b'PYTEST' in open('/proc/self/environ', 'rb').read(), 'not there'", "not there"),
    "makes namespaces": (CALLS.format("unshare(0x10000000)"), "RuntimeError: -1"),
    "mounts": (CALLS.format("mount(b'none', b'/lab', b'tmpfs', 0, b'')"), "RuntimeError: -1"),
    "unmounts": (CALLS.format("umount2(b'/usr', 2)"), "RuntimeError: -1"),
    "becomes another user": (CALLS.format("setuid(1)"), "RuntimeError: -1"),
}  # fmt: skip


TURNS = "(rank.index + 1) % rank.size, {}, (rank.index - 1) % rank.size"
FAKED = f"    for step in range(1, rank.size):\n        await rank.exchange({TURNS.format('np.zeros(6)')})\n"
BOTH = f"rank.exchange({TURNS.format('np.concatenate([array, array]).view(Light)')})"
# Of a rank program steps and bytes cannot be faked.
RANK_CHEATS = {
    "takes the inputs from the other ranks' memory": "shared = {}\nasync def all_gather(rank, array):\n"
    f"    shared[rank.index] = array\n{FAKED}    return np.array([shared[i] for i in range(rank.size)])",
    "takes the inputs from files": "async def all_gather(rank, array):\n    np.save(f'/tmp/{rank.index}.npy', array)\n"
    f"{FAKED}    return np.array([np.load(f'/tmp/{{i}}.npy') for i in range(rank.size)])",
    "sends arrays that lie about their size": "class Light(np.ndarray):\n    nbytes = 0\n"
    f"async def all_gather(rank, array):\n    got = await {BOTH}\n    return np.zeros((rank.size, 6))",
    "turns the clock back": "async def all_gather(rank, array):\n    await rank.compute(9.0)\n    rank.now = 0.0\n"
    f"{FAKED}    return np.zeros((rank.size, 6))",
    "sends without end": "async def all_gather(rank, array):\n"
    "    while True: await rank.send((rank.index + 1) % rank.size, np.zeros(10**6))",
    "computes without end": "async def all_gather(rank, array):\n    while True: await rank.compute(0)",
    "asks for what no rank does": "async def all_gather(rank, array):\n    return await rank.ask('_result')",
    "ends its process in the middle": "async def all_gather(rank, array):\n"
    "    await rank.send((rank.index + 1) % rank.size, array)\n    import os\n    os._exit(0)",
}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


CASES = [("steps", *case) for case in ATTACKS.values()] + [("all_gather", text, "") for text in RANK_CHEATS.values()]


@pytest.mark.parametrize(("exercise", "text", "said"), CASES, ids=[*ATTACKS, *RANK_CHEATS])
def test_an_attack_costs_its_own_exercise_alone_and_leaves_nothing(
    graded: Grading, root: Path, port: int, exercise: str, text: str, said: str
) -> None:
    mark = f"{10**8 + os.getpid()}"
    places = [f"{root}/Makefile", f"{root}/labs", "/etc/shadow", "/var"]
    for name, value in {"places": places, "port": port, "pid": os.getpid(), "mark": mark}.items():
        text = text.replace(f"{{{name}}}", str(value)).replace(f"{{{name}!r}}", repr(value))
    report = graded(seed=987_123_654, **{exercise: text})
    assert points(report) == {"mean": 2, "steps": 1, "all_gather": 3} | {exercise: 0} and report.troubles == []
    (judged,) = (each for each in report.exercises if each.name == exercise)
    assert judged.verdict.text and said in f"{judged.verdict.text} {judged.error}"
    wait_for_the_end_of(mark)


def test_the_environment_and_the_files_are_those_of_the_lab(graded: Grading) -> None:
    loads = "{'PYTHONPATH', 'LD_PRELOAD', 'PYTHONSTARTUP'}"
    text = f"import os\nsteps = 6 if os.listdir() == ['given.py'] and not {loads} & set(os.environ) else 0"
    assert graded(steps=text).score == 6


def test_nothing_that_is_sent_into_the_jail_tells_the_seed(graded: Grading, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[object] = []
    send = wire.send
    monkeypatch.setattr(wire, "send", lambda ends, value, *more: sent.append(value) or send(ends, value, *more))
    assert graded(seed=123_456_789_012_345).score == 6
    assert sent and "123456789012345" not in repr(sent)


def test_a_verdict_that_quotes_a_huge_answer_is_cut_and_a_picture_that_never_ends_is_left_out(
    sample_source: Path, graded: Grading, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless() -> Picture:
        while True:
            pass

    def judge(answer: Answer, generator: object) -> Verdict:
        return wrong(f"not {answer.call('mean', [1.0])!r}", 0.5, endless)

    monkeypatch.setattr(grade, "SECONDS_TO_DRAW", 0.5)
    quoting = notebook.load(sample_source, sample_lab.lab(judge))
    report = graded(of=quoting, mean="def mean(values):\n    return 'x' * 15_000_000")
    assert 1000 < len(report.exercises[0].verdict.text) < 5000
    assert report.exercises[0].picture is None and points(report) == {"mean": 1, "steps": 1, "all_gather": 3}
