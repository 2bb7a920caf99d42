"""`distlab measure` under the launchers, `distlab predict --measured`, and one sentence for each mistake."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from course_tools.__main__ import main
from distlab import launch
from distlab.costs.measured.measurement import read, write
from distlab.costs.measured.report import described
from distlab.launch import LaunchedRun
from distlab.models import cnn, mlp
from distlab.runtime import environment, processes
from distlab.runtime.processes import Finished
from tests.distlab.costs.measured.synthetic import exactly, measurement

pytestmark = pytest.mark.usefixtures("one_job")

DISTLAB = Path(sys.executable).with_name("distlab")
SHORT = ["--batch", "4", "--repeats", "5", "--warm-up", "1", "--threads", "1"]
MODELS = {"cnn": cnn, "mlp": mlp}


def horovodrun(*arguments: object) -> LaunchedRun:
    return launch.horovodrun(DISTLAB, *arguments, echo=False, prepared=False)


def mpirun(*arguments: object) -> LaunchedRun:
    return launch.mpirun(DISTLAB, *arguments, echo=False, prepared=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "communication", "model"),
    [(horovodrun, "Horovod over Gloo", "mlp"), (mpirun, "Horovod over MPI", "cnn")],
    ids=["gloo", "mpi"],
)
def test_it_measures_under_every_launcher(
    start: Callable[..., LaunchedRun], communication: str, model: str, tmp_path: Path
) -> None:
    file = tmp_path / "measured.json"
    start("measure", "--model", model, "--output", file, *SHORT)
    result = read(file)
    assert (result.communication, result.ranks_per_host, result.machines) == (communication, (2,), 1)
    assert (result.batch, result.repeats, result.threads) == (4, 5, 1)
    assert result.gradient_bytes == tuple(4 * each.shape.num_elements() for each in MODELS[model]().trainable_variables)
    assert result.sizes[0] == 1024 and result.sizes[-1] >= sum(result.gradient_bytes) > result.sizes[-2]
    assert "tensorflow" in result.versions
    text = file.read_text()
    assert os.uname().nodename not in text and str(Path.home()) not in text and str(tmp_path) not in text
    assert main(["predict", "--measured", str(file), "--ranks", "1,2"]) == 0


def distlab(*words: object, starter: tuple[object, ...] = ()) -> Finished:
    command = [*starter, sys.executable, "-m", "course_tools", *words]
    return processes.run(["env", *map("=".join, environment.variables().items()), *map(str, command)], 900)


@pytest.mark.slow
def test_one_rank_alone_is_refused(tmp_path: Path) -> None:
    finished = distlab("measure", "--output", tmp_path / "one.json", *SHORT)
    assert finished.status == 2
    assert "Only one rank was started, and communication takes two: mpirun -np 2 distlab measure" in finished.output
    assert "Traceback" not in finished.output
    assert not (tmp_path / "one.json").exists()


@pytest.mark.slow
def test_ranks_that_disagree_are_refused(tmp_path: Path) -> None:
    own = [sys.executable, "-m", "course_tools", "measure", f"--output={tmp_path / 'two.json'}"]
    pair = ["mpirun", "-np", "1", *own, "--batch=4", ":", "-np", "1"]
    finished = distlab(*own[3:], "--batch=8", starter=tuple(pair))
    assert finished.status == 2
    assert finished.output.count("The ranks disagree: batch is 4 on rank 0 and 8 on rank 1; start all of them") == 1
    assert "Traceback" not in finished.output
    assert not (tmp_path / "two.json").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["measure", "--output", "missing/a.json"], "There is no folder missing"),
        (["measure", "--output", "a.json", "--sizes", "6"], "multiples of 4"),
        (
            ["predict", "--measured", "missing.json"],
            "There is no file missing.json; `mpirun -np 2 distlab measure --output",
        ),
        (["predict", "--measured", "two.json", "--model", "cnn"], "--model is for predictions by formula"),
        (["predict", "--measured", "two.json", "--ranks", "0..4"], "ranks are written 8, 1,2,4 or 1..1024"),
        (
            ["predict", "--measured", "two.json", "--compare", "other.json"],
            "do not belong together: versions is",
        ),
        (["predict", "--measured", "two.json", "--compare", "three.json", "--ranks", "4"], "no prediction for 3 ranks"),
        (["predict", "--measured", "host.json", "--ranks", "1..8"], "ask for at most 2 ranks, or measure on two hosts"),
        (["predict", "--compare", "two.json"], "--compare needs --measured"),
    ],
)
def test_a_mistake_is_one_sentence(
    words: list[str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    versions = {"python": "3.11.7", "tensorflow": "2.20.0", "horovod": "0.28.1"}
    write(measurement(2), Path("two.json"))
    write(measurement(3), Path("three.json"))
    write(measurement(4, versions=versions), Path("other.json"))
    write(measurement(2, ranks_per_host=(2,), machines=1, cores=2), Path("host.json"))
    assert main(words) == 2
    message = capsys.readouterr().err
    assert expected in message
    assert len(message.splitlines()) == 1


def test_without_ranks_the_usual_and_the_measured_ones_are_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for ranks in (2, 3):
        write(measurement(ranks), tmp_path / f"{ranks}.json")
    arguments = ["predict", "--measured", str(tmp_path / "2.json"), "--compare", str(tmp_path / "3.json"), "--json"]
    assert main(arguments) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["ranks"] == [1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    assert [row["ranks"] for row in content["residuals"]] == [3]


def test_of_one_host_no_more_ranks_than_it_has_cores_are_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(measurement(2, ranks_per_host=(2,), machines=1, cores=4), tmp_path / "host.json")
    assert main(["predict", "--measured", str(tmp_path / "host.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ranks"] == [1, 2, 4]


def test_who_has_measured_sees_what_decides() -> None:
    lines = described(measurement(2, step=exactly(0.0321))).splitlines()
    assert "2 ranks on 2 hosts" in lines[0] and "python 3.11.7" in lines[0]
    assert "2,000,000 bytes in 2 gradients" in lines[1]
    assert lines[-1].split()[:6] == ["step", "with", "communication", "32.1", "ms", "(half"]
