"""The launcher with TF_CONFIG: what a job gives, and failures and deadlines, all with real processes."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from distlab import cluster_spec, devices, launch
from distlab.launch import starters
from tests.distlab.launch.launched_program import Launched

LIMITS = {"seconds": 600, "start_seconds": 300}


def lines(text: str, tag: str) -> list[str]:
    return [line.removeprefix(f"[{tag}] ") for line in text.splitlines() if line.startswith(f"[{tag}] ")]


def test_each_worker_runs_the_program_with_a_task_of_one_valid_cluster(
    launched: Launched, capsys: pytest.CaptureFixture[str]
) -> None:
    run = launch.tensorflow(launched.program, "all=show:TF_CONFIG", workers=3, **LIMITS)
    texts = [run.output[f"worker {index}"].removeprefix("TF_CONFIG is ") for index in range(3)]
    specs = cluster_spec.check_all(texts)
    assert [(spec.task_type, spec.index) for spec in specs] == [("worker", 0), ("worker", 1), ("worker", 2)]
    assert run.exit_codes == {"worker 0": 0, "worker 1": 0, "worker 2": 0}


@pytest.mark.slow
def test_addresses_differ_from_job_to_job(launched: Launched) -> None:
    first, second = (launch.tensorflow(launched.program, "all=show:TF_CONFIG", echo=False, **LIMITS) for _ in range(2))
    addresses = [set(re.findall(r"127\.0\.0\.1:\d+", run.output["worker 0"])) for run in (first, second)]
    assert len(addresses[0]) == len(addresses[1]) == 2
    assert addresses[0] != addresses[1]


def test_output_is_printed_with_the_rank_in_front_and_returned_by_rank(
    launched: Launched, capsys: pytest.CaptureFixture[str]
) -> None:
    run = launch.tensorflow(launched.program, "0=lines3,errors", "1=lines2", **LIMITS)
    printed = capsys.readouterr().out
    assert lines(printed, "worker 0") == [*(f"line {line} of worker 0" for line in range(3)), "to standard error"]
    assert lines(printed, "worker 1") == ["line 0 of worker 1", "line 1 of worker 1"]
    assert run.output["worker 1"] == "line 0 of worker 1\nline 1 of worker 1"


@pytest.mark.slow
def test_output_comes_while_the_job_runs(launched: Launched) -> None:
    """The program waits for ten minutes after its line: only a line that is shown at once ends this test."""
    code = f"from distlab import launch; launch.tensorflow({str(launched.program)!r}, 'all=say:early,listen,wait')"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        try:
            assert any(line == "[worker 1] early\n" for line in parent.stdout)
        finally:
            parent.terminate()
    assert launched.gone_within(60)


def test_without_echo_nothing_is_printed(launched: Launched, capsys: pytest.CaptureFixture[str]) -> None:
    run = launch.tensorflow(launched.program, "all=lines2", echo=False, **LIMITS)
    assert capsys.readouterr().out == ""
    assert run.output["worker 0"] == "line 0 of worker 0\nline 1 of worker 0"


def test_lines_without_end_and_bytes_that_are_no_text_are_kept(launched: Launched) -> None:
    run = launch.tensorflow(launched.program, "0=partial", "1=bytes", echo=False, **LIMITS)
    assert run.output == {"worker 0": "no newline at the end", "worker 1": "\ufffd\ufffd text"}


def test_tensorflow_notes_are_left_out_and_errors_are_not(launched: Launched) -> None:
    run = launch.tensorflow(launched.program, "all=notes,errors", echo=False, **LIMITS)
    assert run.output["worker 0"] == "to standard error"


@pytest.mark.slow
def test_a_worker_that_is_done_first_is_not_shown_as_crashed(
    launched: Launched, capsys: pytest.CaptureFixture[str]
) -> None:
    run = launch.tensorflow(launched.program, "0=listen,outlive1,say:done", "1=listen", **LIMITS)
    assert lines(capsys.readouterr().out, "worker 0") == ["done"]
    assert "stopped sending heartbeats" in run.output["worker 0"]
    with pytest.raises(launch.WorkerFailed, match="Check the task logs for an earlier error"):
        launch.tensorflow(launched.program, "0=listen,outlive1,exit3", "1=listen", **LIMITS)


@pytest.mark.slow
def test_the_printed_shell_commands_do_the_same(
    launched: Launched, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(launched.folder)
    run = launch.tensorflow(launched.program, "0=lines2", "1=say:it's $HOME", **LIMITS)
    printed = capsys.readouterr().out
    commands = "".join(line + "\n" for line in printed.splitlines() if not line.startswith("["))
    # Both write to one pipe: only a buffer keeps their lines whole.
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONUNBUFFERED": ""}
    by_hand = subprocess.run(
        ["bash", "-c", commands + "\nwait"], env=environment, capture_output=True, text=True, timeout=300
    )
    assert sorted(by_hand.stdout.splitlines()) == sorted("\n".join(run.output.values()).splitlines())


def test_the_result_is_what_the_program_wrote_as_json(launched: Launched) -> None:
    run = launch.tensorflow(launched.program, "0=result", echo=False, result=True, **LIMITS)
    assert run.result == {"loss": 0.5, "from": "0"}


def test_a_program_that_writes_no_result_is_named(launched: Launched) -> None:
    with pytest.raises(launch.LaunchError, match=r"program\.py finished without an error but wrote no result file"):
        launch.tensorflow(launched.program, "0=lines1", echo=False, result=True, **LIMITS)


@pytest.mark.slow
def test_workers_share_the_cores(launched: Launched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "cores", lambda: 7)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    run = launch.tensorflow(
        launched.program, "all=show:TF_NUM_INTRAOP_THREADS,show:OMP_NUM_THREADS", workers=3, echo=False, **LIMITS
    )
    assert set(run.output.values()) == {"TF_NUM_INTRAOP_THREADS is 2\nOMP_NUM_THREADS is 2"}


def test_threads_that_the_user_has_set_stay(launched: Launched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    run = launch.tensorflow(launched.program, "all=show:OMP_NUM_THREADS", echo=False, **LIMITS)
    assert set(run.output.values()) == {"OMP_NUM_THREADS is 5"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gpus", "visible", "expected"),
    [
        (0, None, ["None", "None"]),
        (2, None, ["0", "1"]),
        (4, None, ["0", "1"]),
        (4, "3,1,2", ["3", "1"]),
        (1, None, ["-1", "-1"]),
        (4, "2", ["-1", "-1"]),
    ],
)
def test_each_worker_gets_a_gpu_of_its_own_or_none(
    launched: Launched, monkeypatch: pytest.MonkeyPatch, gpus: int, visible: str | None, expected: list[str]
) -> None:
    monkeypatch.setattr(devices, "gpu_names", lambda: ["a GPU"] * gpus)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    run = launch.tensorflow(launched.program, "all=show:CUDA_VISIBLE_DEVICES", echo=False, **LIMITS)
    assert list(run.output.values()) == [f"CUDA_VISIBLE_DEVICES is {name}" for name in expected]


@pytest.mark.slow
def test_with_parameter_servers_the_job_is_over_when_the_chief_ends(launched: Launched) -> None:
    run = launch.tensorflow(
        launched.program,
        *("chief=listen,say:trained", "all=say:here", "ps=listen,wait", "0=listen,wait", "1=listen,wait"),
        **{"workers": 2, "parameter_servers": 2, "echo": False, **LIMITS},
    )
    assert run.exit_codes == dict.fromkeys(["worker 0", "worker 1", "ps 0", "ps 1"]) | {"chief": 0}
    assert run.output["chief"] == "trained\nhere"
    assert launched.left() == []


@pytest.mark.slow
def test_a_failing_worker_is_shown_with_rank_exit_code_and_last_20_lines(launched: Launched) -> None:
    with pytest.raises(launch.WorkerFailed) as caught:
        launch.tensorflow(launched.program, "0=listen,wait", "1=lines25,exit3", echo=False, **LIMITS)
    assert (caught.value.rank, caught.value.exit_code) == ("worker 1", 3)
    message = str(caught.value)
    assert "worker 1 failed, exit code 3" in message
    assert re.findall(r"line (\d+) of worker 1", message) == [str(line) for line in range(5, 25)]
    assert launched.left() == []
    assert caught.value.run.exit_codes == {"worker 0": None, "worker 1": 3}


@pytest.mark.slow
def test_workers_that_do_not_react_to_sigterm_and_their_children_are_ended_too(launched: Launched) -> None:
    with pytest.raises(launch.WorkerFailed):
        launch.tensorflow(launched.program, "0=stubborn,child,wait", "1=raise", "2=kill", workers=3, **LIMITS)
    assert len(launched.pids()) == 4
    assert launched.left() == []


@pytest.mark.slow
def test_a_worker_that_is_killed_is_told_apart_from_one_that_fails(launched: Launched) -> None:
    with pytest.raises(launch.WorkerFailed, match="worker 0 was killed by signal 9, exit code -9"):
        launch.tensorflow(launched.program, "0=kill", "1=listen,wait", echo=False, **LIMITS)


@pytest.mark.slow
def test_a_worker_that_never_connects_is_named_with_its_address(launched: Launched) -> None:
    limits = {"seconds": 60, "start_seconds": 5}
    with pytest.raises(launch.WorkerMissing) as caught:
        launch.tensorflow(launched.program, "all=show:TF_CONFIG", "0=listen,wait", "1=wait", echo=False, **limits)
    spec = cluster_spec.check(caught.value.run.output["worker 1"].removeprefix("TF_CONFIG is "))
    assert caught.value.ranks == ["worker 1"]
    assert f"worker 1 (nobody listens at {spec.address})" in str(caught.value)
    assert "waiting for it: worker 0" in str(caught.value)
    assert launched.left() == []


@pytest.mark.slow
def test_a_worker_that_ends_well_without_connecting_is_missing_too(launched: Launched) -> None:
    with pytest.raises(launch.WorkerMissing, match=r"worker 1 .*it has ended with exit code 0"):
        launch.tensorflow(launched.program, "0=listen,wait", "1=lines1", echo=False, seconds=60, start_seconds=5)


@pytest.mark.slow
def test_a_job_that_is_not_over_in_time_is_ended(launched: Launched) -> None:
    with pytest.raises(launch.DeadlinePassed, match=r"not over after 5 s .*: worker 0, worker 1") as caught:
        launch.tensorflow(launched.program, "all=say:I wait,listen,wait", echo=False, seconds=5)
    assert "I wait" in str(caught.value)
    assert launched.left() == []


def test_an_orphan_that_holds_the_output_open_does_not_hold_the_job(launched: Launched) -> None:
    run = launch.tensorflow(launched.program, "all=orphan,lines1", echo=False, **LIMITS)
    assert run.exit_codes == {"worker 0": 0, "worker 1": 0}


@pytest.mark.slow
def test_a_port_that_is_taken_meanwhile_is_replaced(
    launched: Launched, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    free_addresses, calls = starters.free_addresses, []
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()

        def first_time_taken(count: int) -> list[str]:
            calls.append(count)
            taken = [f"127.0.0.1:{holder.getsockname()[1]}"] if len(calls) == 1 else []
            return [*taken, *free_addresses(count - len(taken))]

        monkeypatch.setattr(starters, "free_addresses", first_time_taken)
        run = launch.tensorflow(launched.program, "all=listen,say:ready", **LIMITS)
    assert calls == [2, 2]
    assert run.exit_codes == {"worker 0": 0, "worker 1": 0}
    assert "took one of the ports" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (["nowhere.py"], {}, "There is no program nowhere.py, seen from the working folder /"),
        (["/nowhere.py"], {}, "There is no program /nowhere.py; give the path of a Python file"),
        (["program.py"], {"python": "/nowhere/python"}, "There is no interpreter /nowhere/python"),
        (["."], {}, ". is a folder; give the path of a Python file"),
        (["train.ipynb"], {}, "train.ipynb is a notebook; give the path of a Python file"),
        (["program.py"], {"python": "program.py"}, "program.py is no interpreter"),
        (["program.py"], {"workers": 0}, "workers=0 makes no sense"),
        (["program.py"], {"workers": "2"}, "workers='2' makes no sense: it must be a whole number"),
        (["program.py"], {"workers": 2.0}, "workers=2.0 makes no sense: it must be a whole number"),
        (["program.py"], {"timeout": 5}, "timeout= is not known: besides its own arguments, which help() shows"),
        (["program.py"], {"seconds": None}, "seconds=None makes no sense: it must be more than 0"),
        ([None], {}, "None is no program: give the path of a Python file"),
        ([["program.py", "--epochs", 1]], {}, "'--epochs', 1] is no program: give the path"),
        ([len], {}, "len is no program: give the path of a Python file"),
        (["program.py"], {"seconds": "5"}, "seconds='5' makes no sense: it must be more than 0"),
        (["program.py"], {"parameter_servers": -1}, "parameter_servers=-1 makes no sense"),
    ],
)
def test_what_cannot_be_started_is_refused_in_one_sentence(
    launched: Launched, monkeypatch: pytest.MonkeyPatch, arguments: list[str], options: dict[str, object], sentence: str
) -> None:
    monkeypatch.chdir(launched.folder)
    (launched.folder / "train.ipynb").write_text("{}")
    with pytest.raises(launch.LaunchError, match=re.escape(sentence)):
        launch.tensorflow(*arguments, **options)


TWO_WORKERS = """
import distlab
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    variable = tf.Variable(1.0)

@tf.function
def total_of_ranks():
    return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", variable + 1.0))

total = total_of_ranks()
print(f"sum {float(strategy.experimental_local_results(total)[0]):.0f}")
"""


@pytest.mark.slow
def test_ten_starts_in_a_row_of_a_two_worker_job_succeed(tmp_path: Path) -> None:
    program = tmp_path / "two_workers.py"
    program.write_text(TWO_WORKERS)
    runs = [launch.tensorflow(program, echo=False, seconds=600, start_seconds=300) for _ in range(10)]
    assert [run.output for run in runs] == [{"worker 0": "sum 4", "worker 1": "sum 4"}] * 10


@pytest.mark.slow
def test_tensorflow_at_a_taken_port_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "two_workers.py"
    program.write_text(TWO_WORKERS)
    free_addresses, taken = starters.free_addresses, []
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()

        def first_time_taken(count: int) -> list[str]:
            if taken:
                return free_addresses(count)
            taken.append(f"127.0.0.1:{holder.getsockname()[1]}")
            return [*taken, *free_addresses(count - 1)]

        monkeypatch.setattr(starters, "free_addresses", first_time_taken)
        run = launch.tensorflow(program, echo=False, seconds=600, start_seconds=300)
    assert run.output == {"worker 0": "sum 4", "worker 1": "sum 4"}


@pytest.mark.slow
def test_workers_that_horovod_would_not_connect_are_not_started(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("import horovod.tensorflow as hvd\n")
    with pytest.raises(launch.LaunchError, match=r"^train\.py trains with Horovod.*each of 3 workers would"):
        launch.tensorflow(program, workers=3, **LIMITS)
    program.write_text("def train():\n    import horovod.tensorflow as hvd\n")
    assert launch.tensorflow(program, workers=2, echo=False, **LIMITS).exit_codes == {"worker 0": 0, "worker 1": 0}
