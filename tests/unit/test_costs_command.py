"""`distlab predict`: tables, JSON, the report, and one sentence for each mistake."""

import json

import pytest

from distlab.costs import Assumptions, predict
from distlab.costs.command import main, ranks_in
from distlab.costs.published import RESULTS, compare, table


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8", [8]),
        ("1,2,4", [1, 2, 4]),
        ("4,2,2", [2, 4]),
        ("1..4", [1, 2, 3, 4]),
        ("3..40", [3, 4, 8, 16, 32, 40]),
        ("1..1024", [2**power for power in range(11)]),
        ("1..3,100", [1, 2, 3, 100]),
    ],
)
def test_ranks_on_the_command_line(text: str, expected: list[int]) -> None:
    assert ranks_in(text).tolist() == expected


@pytest.mark.parametrize("text", ["", "0", "4..2", "1...3", "two", "1,,2", "-3", "1.5"])
def test_ranks_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"ranks are written 8, 1,2,4 or 1\.\.1024"):
        ranks_in(text)


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["--model", "resnet50", "--hardware", "bigbasin-ethernet50", "--ranks", "8,256", "--baseline", "8"]) == 0
    )
    output = capsys.readouterr().out
    assert "25,557,032 parameters, 102.2 MB of gradient, 32 images per rank" in output
    last = output.splitlines()[-1].split()
    assert last[0] == "256"
    efficiency = predict("resnet50", "bigbasin-ethernet50", 256, baseline_ranks=8).efficiency
    assert last[-1] == f"{100 * efficiency:.1f}%"


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    asked = "--model vgg16 --hardware horovod-roce25 --ranks 1..1024 --algorithm ring --overlap none --json"
    assert main(asked.split()) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["ranks"] == [2**power for power in range(11)]
    assert result["overlap"] == "none"
    assert (
        result["efficiency"] == predict("vgg16", "horovod-roce25", result["ranks"], "ring", "none").efficiency.tolist()
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--model alexnet", "resnet50, resnet101"),
        ("--hardware abacus", "horovod-roce25"),
        ("--algorithm rings", "halving_doubling"),
        ("--overlap much", "fusion, layers, none"),
        ("--ranks none", "1..1024"),
        ("--batch many", "--batch"),
        ("--rank 3 --colour", "--ranks"),
    ],
)
def test_mistakes_on_the_command_line_get_one_sentence(
    arguments: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert expected in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.slow
def test_the_command_prints_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--published"]) == 0
    text = capsys.readouterr().out
    assert table(compare()) in text
    for assumption in vars(Assumptions()):
        assert assumption in text
    used = [result for result in RESULTS if result.is_described and not result.is_blind]
    assert f"{len(used)} of the {len(used)} rows" in text
