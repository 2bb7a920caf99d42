"""`distlab predict`: its tables, and one sentence where it cannot be."""

from pathlib import Path

import pytest

from course_tools.__main__ import main
from distlab.costs import predict
from distlab.costs.measured.measurement import write
from distlab.costs.printed import ranks_in
from tests.distlab.costs.measured.synthetic import measurement


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")


def test_ranks_on_the_command_line() -> None:
    assert ranks_in("4,2,2").tolist() == [2, 4]
    assert ranks_in("3..40").tolist() == [3, 4, 8, 16, 32, 40]
    assert ranks_in("1..3,100").tolist() == [1, 2, 3, 100]


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    asked = "predict --model vgg16 --hardware horovod-roce25 --ranks 8,256 --baseline 8 --algorithm ring --overlap none"
    efficiency = predict("vgg16", "horovod-roce25", [8, 256], "ring", "none", baseline_ranks=8).efficiency
    assert main(asked.split()) == 0
    _, _, last, _, conclusion, *_ = capsys.readouterr().out.splitlines()
    ranks, step, unit, *_, share = last.split()
    assert (ranks, share) == ("256", f"{100 * efficiency[1]:.1f}%")
    assert conclusion.startswith("On 256 ranks ") and f" {share}; a step takes {step} {unit}, " in conclusion


def test_the_conclusion_on_a_split_has_the_numbers_of_the_last_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "--model", "gpt-175b", "--tensor", "8", "--pipeline", "8", "--ranks", "64,128"]) == 0
    _, _, last, _, conclusion, *_ = capsys.readouterr().out.splitlines()
    ranks, _, _, step, *_, states, _, activations, _ = last.split()
    assert conclusion.startswith(f"On {ranks} ranks a step takes {step} s at ")
    assert conclusion.endswith(f" is enough for {states} GB of states and {activations} GB of activations.")


def test_sentences_fold_in_the_width_of_the_terminal_and_tables_stay(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["predict", "--ranks", "8"]) == 0
    header, row, *wide = capsys.readouterr().out.splitlines()
    monkeypatch.delenv("COLUMNS")  # and the test's output goes to no terminal
    assert main(["predict", "--ranks", "8"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [header, row]
    assert max(map(len, lines)) <= 100 < max(map(len, wide))
    assert " ".join(lines[2:]).split() == " ".join(wide).split()


def ranks_of(table: str) -> list[int]:
    rows, *_ = table.split("\n\n")
    return [int(row.split()[0]) for row in rows.splitlines()[1:]]


def test_without_ranks_the_usual_and_the_measured_ones_are_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for ranks in (2, 3):
        write(measurement(ranks), tmp_path / f"{ranks}.json")
    write(measurement(2, ranks_per_host=(2,), machines=1, cores=4), tmp_path / "host.json")
    arguments = ["predict", "--measured", str(tmp_path / "2.json"), "--compare", str(tmp_path / "3.json")]
    assert main(arguments) == 0
    assert ranks_of(capsys.readouterr().out) == [1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    assert main(["predict", "--measured", str(tmp_path / "host.json")]) == 0
    assert ranks_of(capsys.readouterr().out) == [1, 2, 4]  # no more than one host has cores


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--model gpt-9b", "resnet50, resnet101"),
        ("--ranks none", "1..1024"),
        ("--tensor 8", "--tensor would change nothing here"),
        ("--model gpt-175b --tensor 8 --ranks 12", "12 ranks are no multiple of tensor × pipeline = 8"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", *arguments.split()]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert expected in captured.err
