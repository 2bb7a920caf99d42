"""The sandbox as the grader holds it: rank programs as on the virtual cluster itself, and an end whatever happens."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import psutil
import pytest
from lab_02 import observe

from course_tools.sandbox import PLAIN, TENSORFLOW, SandboxedWork, Server, system_call_filter, wire
from course_tools.sandbox.process import Sandbox
from distlab import simulate
from distlab.labs import Answer, NotDone, OwnAnswer
from distlab.simulate import Network, World
from tests.course_tools.sandbox import weakly_limited

pytestmark = pytest.mark.slow
NETWORK = Network(latency=1e-6, seconds_per_byte=1e-9, seconds_per_byte_reduced=1e-10)
SECONDS = 300.0
NOBODY = 65534

PROGRAMS = """
import numpy as np
from distlab.collectives import ring_all_reduce

async def any_order(rank, array):
    if rank.index:
        await rank.compute(1e-6 * (rank.size - rank.index))
        await rank.send(0, array)
        return rank.now
    return [await rank.receive_any() for _ in range(1, rank.size)]

async def without_input(rank):
    await rank.compute(1.0)
    return rank.index

async def stuck(rank, array):
    return await rank.receive((rank.index + 1) % rank.size)

async def not_awaited(rank, array):
    rank.send((rank.index + 1) % rank.size, array)
    return array

async def to_itself(rank, array):
    await rank.send(rank.index, array)

async def to_nobody(rank, array):
    await rank.send(1.5, array)

async def of_objects(rank, array):
    await rank.send((rank.index + 1) % rank.size, [object()])

async def unlike(rank, array):
    await rank.reduce(array, array[:1])

async def raises(rank, array):
    return {}['missing']

async def calls_itself(rank, array):
    return await calls_itself(rank, array)

async def awaits_something_else(rank, array):
    import asyncio
    await asyncio.sleep(1)

def no_coroutine(rank, array):
    return array

async def untouched(rank, array):
    ...

async def later(rank, array):
    raise NotImplementedError
"""
WRONG = ["stuck", "not_awaited", "to_itself", "to_nobody", "of_objects", "unlike", "raises", "calls_itself"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(["distlab.collectives"]) as server:
        yield server


@pytest.fixture(scope="module")
def both(server: Server) -> Iterator[tuple[Answer, Answer]]:
    """The same programs as an answer of this process and as one in a sandbox."""
    namespace: dict[str, object] = {}
    exec(PROGRAMS, namespace)
    with SandboxedWork(server, PLAIN) as work:
        assert work.run_cell(PROGRAMS, "programs", SECONDS).error is None
        yield OwnAnswer(namespace), work.answer(600)


def inputs(size: int) -> list[np.ndarray]:
    return [np.random.default_rng(rank).normal(size=7) for rank in range(size)]


@pytest.mark.parametrize("size", [1, 2, 5, 11])
@pytest.mark.parametrize("name", ["ring_all_reduce", "any_order"])
def test_results_times_and_messages_are_those_of_a_run_in_one_process(
    both: tuple[Answer, Answer], name: str, size: int
) -> None:
    own, boxed = (answer.run(name, World(size, NETWORK), inputs(size)) for answer in both)
    assert np.array_equal(own.events.columns, boxed.events.columns)
    assert np.array_equal(own.finished, boxed.finished)
    assert (own.bytes_sent, own.messages, own.elapsed) == (boxed.bytes_sent, boxed.messages, boxed.elapsed)
    assert repr(own.results) == repr(boxed.results)
    if name == "ring_all_reduce":
        assert np.allclose(boxed.results[0], sum(inputs(size)))


def test_a_program_without_input_runs_too(both: tuple[Answer, Answer]) -> None:
    assert [answer.run("without_input", World(3)).results for answer in both] == [[0, 1, 2]] * 2


@pytest.mark.parametrize("name", [*WRONG, "awaits_something_else", "no_coroutine"])
def test_a_mistake_gives_the_same_error_with_the_same_words(both: tuple[Answer, Answer], name: str) -> None:
    errors = []
    for answer in both:
        with pytest.raises(simulate.SimulationError) as caught:
            answer.run(name, World(3, NETWORK), inputs(3))
        errors.append((type(caught.value), str(caught.value)))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("name", ["untouched", "later", "not_there"])
def test_a_program_that_was_not_begun_is_not_done(both: tuple[Answer, Answer], name: str) -> None:
    for answer in both:
        with pytest.raises(NotDone):
            answer.run(name, World(3, NETWORK), inputs(3))


def test_the_source_of_a_function_is_that_of_its_last_definition(server: Server) -> None:
    with SandboxedWork(server, PLAIN) as work:
        work.run_cell("def one():\n    return 1\n", "first", SECONDS)
        work.run_cell("x = 2\ndef one():\n    return 2\n\ny = one()", "second", SECONDS)
        work.run_cell("def broken(", "third", SECONDS)
        assert work.answer(SECONDS).source("one") == "def one():\n    return 2"
        with pytest.raises(NotDone):
            work.answer(SECONDS).source("two")


CLOCK = """
import time
def elapsed_seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
"""


def test_what_is_asked_beside_the_student_s_code_the_judge_answers_in_its_own_process(server: Server) -> None:
    namespace: dict[str, object] = {}
    exec(CLOCK, namespace)
    with SandboxedWork(server, PLAIN) as work:
        work.run_cell(CLOCK, "clock", SECONDS)
        for answer in (OwnAnswer(namespace), work.answer(SECONDS)):
            watch = observe.WorkTimer(waits=0.05, computes=0.05)
            given = answer.inside(observe.time_work, respond=watch)
            assert set(given) == set(watch.timings)
            for kind, timing in watch.timings.items():
                assert timing.calls == 1
                assert 0.05 <= timing.inside < given[kind] < timing.outside


def test_a_program_of_two_ranks_runs_under_mpi_in_the_sandbox(server: Server) -> None:
    program = "from mpi4py import MPI\nprint(MPI.COMM_WORLD.allreduce(MPI.COMM_WORLD.rank + 1))\n"
    start = "from distlab import launch\nlaunch.mpirun('program.py', ranks=2, seconds=500)"
    with SandboxedWork(server, TENSORFLOW, {"program.py": program.encode()}) as work:
        run = work.run_cell(start, "launch", 600)
    assert run.error is None, run
    assert sorted(run.printed.splitlines())[-2:] == ["[rank 0] 3", "[rank 1] 3"]


GRADER = """
import sys
from course_tools.sandbox import PLAIN, SandboxedWork, Server
with Server() as server, SandboxedWork(server, PLAIN) as work:
    work.run_cell(f"import subprocess; subprocess.Popen(['sleep', '{sys.argv[1]}'])", "one", 300)
    print("started", flush=True)
    work.run_cell("while True: pass", "two", 600)
"""


def sleeping(number: str) -> list[psutil.Process]:
    return [process for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"] == ["sleep", number]]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_when_the_grader_is_ended_nothing_of_a_sandbox_is_left(number: int) -> None:
    mark = str(np.random.default_rng().integers(10**8, 10**9))
    grader = subprocess.Popen(
        [sys.executable, "-c", GRADER, mark], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert grader.stdout.readline() == "started\n"
        assert len(sleeping(mark)) == 1
        grader.send_signal(number)
        grader.wait(timeout=SECONDS)
        until = time.monotonic() + SECONDS
        while sleeping(mark) and time.monotonic() < until:
            time.sleep(0.05)
        assert sleeping(mark) == []
    finally:
        grader.kill()
        for process in sleeping(mark):
            process.kill()


# As root, grading becomes another user; and it is tried as a user who was never root.
USERS = [0, 12345] if os.geteuid() == 0 else [os.geteuid()]


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the keeper counts processes in /proc")
@pytest.mark.parametrize("user", USERS)
def test_without_namespaces_the_limits_hold_and_nothing_is_left(user: int) -> None:
    mark = str(np.random.default_rng().integers(10**8, 10**9))
    command = [sys.executable, "-m", "tests.course_tools.sandbox.weakly_limited", str(user), mark]
    run = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if run.returncode == weakly_limited.NOT_HERE:
        pytest.skip(run.stdout.strip())
    assert run.returncode == 0, run.stderr
    outcomes = json.loads(run.stdout)
    closed, _, reached = outcomes.pop("report").partition("NOT blocked here: ")
    assert "limits on time" in closed and "the network, other files, the course's own solutions" in reached
    assert ("system calls that pass the limits" in closed) == system_call_filter.is_known()
    # With namespaces, if this user may make them, the same machine isolates completely.
    assert outcomes.pop("is weak") in (False, user != 0)
    assert outcomes.pop("left behind")
    assert outcomes.pop("user") == (NOBODY if user == 0 else user)
    said = [
        "did not end",
        "processes",
        "MiB of memory",
        "exit status 4",
        "MiB of memory",
        "Function not implemented",
        "OSError",
    ]
    for (attack, outcome), words in zip(outcomes.items(), said, strict=True):
        assert words in outcome, (attack, outcome)
    assert sleeping(mark) == []


def test_an_interrupt_while_a_sandbox_starts_lets_its_server_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    with Server() as server:
        monkeypatch.setattr(wire, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt) as raised:
            Sandbox(server, PLAIN)
    assert raised.traceback  # it still holds the sandbox that was being made
