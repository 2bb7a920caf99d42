"""`distlab predict`: tables, JSON, the report, and one sentence for each mistake."""

import json

import pytest

from course_tools.__main__ import main
from distlab.costs import Assumptions, Split, predict, predict_split
from distlab.costs.prediction.report import ranks_in
from distlab.costs.published.efficiencies import compare, summary, table
from distlab.costs.published.split_figures import compare_figures, figures_table


def assert_one_sentence(arguments: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends with status 2, says one sentence that contains `expected`, and prints nothing else."""
    assert main(["predict", *arguments.split()]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert expected in captured.err
    assert captured.err.count("\n") == 1


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


@pytest.mark.parametrize("text", ["", "0", "4..2", "1...3", "two", "1,,2", "-3", "1.5", "1000000001", "9" * 30])
def test_ranks_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"ranks are written 8, 1,2,4 or 1\.\.1024"):
        ranks_in(text)


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    asked = "--model resnet50 --hardware bigbasin-ethernet50 --ranks 8,256 --baseline 8"
    assert main(["predict", *asked.split()]) == 0
    output = capsys.readouterr().out
    assert "25,557,032 parameters, 102.2 MB of gradient, 32 images per rank" in output
    last = output.splitlines()[-1].split()
    assert last[0] == "256"
    efficiency = predict("resnet50", "bigbasin-ethernet50", 256, baseline_ranks=8).efficiency
    assert last[-1] == f"{100 * efficiency:.1f}%"


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    asked = "--model vgg16 --hardware horovod-roce25 --ranks 1..1024 --algorithm ring --overlap none --json"
    assert main(["predict", *asked.split()]) == 0
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
        ("--published --model vgg16", "--model makes no sense here"),
        ("--baseline 0", "not 0"),
    ],
)
def test_mistakes_on_the_command_line_get_one_sentence(
    arguments: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_one_sentence(arguments, expected, capsys)


@pytest.mark.slow
def test_the_command_prints_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "--published"]) == 0
    text = capsys.readouterr().out
    comparisons = compare()
    assert table(comparisons) in text
    assert summary(comparisons) in text
    for assumption in vars(Assumptions()):
        assert assumption in text
    for kind in ("bubble", "memory", "throughput"):
        comparisons = [each for each in compare_figures() if each.figure.kind == kind]
        assert figures_table(comparisons) in text
        described = sum(each.figure.is_described for each in comparisons)
        assert f"{kind}: {described} of {described} figures" in text


def test_the_command_prints_a_split_transformer(capsys: pytest.CaptureFixture[str]) -> None:
    asked = "--model gpt-146b --ranks 768,1536 --tensor 8 --pipeline 8 --chunks 2 --zero 1 --sequences 2304"
    assert main(["predict", *asked.split()]) == 0
    output = capsys.readouterr().out
    assert "tensor 8 × pipeline 8 (1F1B, interleaved, 2 chunks a stage), micro-batches of 1" in output
    assert "ZeRO 1: optimizer states sharded" in output
    row = next(line.split() for line in output.splitlines() if line.startswith("   1536"))
    prediction = predict_split("gpt-146b", "selene", 1536, Split(8, 8, 1, chunks=2), sequences=2304)
    assert row[:3] == ["1536", "24", "2304"]
    assert f"{prediction.flops_per_device / 1e12:.1f}" in row
    assert f"{prediction.state_bytes / 1e9:.1f}" in row


def test_the_command_prints_a_split_transformer_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    asked = "--model palm-540b --tensor 8 --pipeline 2 --zero 3 --json"
    assert main(["predict", *asked.split()]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["split"] == {"tensor": 8, "pipeline": 2, "zero": 3, "micro_batch": 1, "chunks": 1}
    assert [each["ranks"] for each in result["predictions"]] == [16, 32, 64, 128, 256, 512, 1024]
    fits = [each["fits"] for each in result["predictions"]]
    assert not fits[0] and fits[-1]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--model gpt-9b", "palm-540b"),
        ("--model resnet50 --pipeline 4", "--pipeline is for transformers: gpt-1.7b"),
        ("--model gpt-175b --batch 4", "--batch is for networks of images: mlp"),
        ("--model gpt-175b --tensor 8 --ranks 12", "12 ranks are no multiple of tensor × pipeline = 8 × 1 = 8"),
        ("--model gpt-175b --zero 4", "the stages 1, 2 and 3"),
        ("--model gpt-175b --hardware gigabit", "no matrix units"),
        ("--model gpt-175b --tensor 0", "tensor is 0; it is a whole number of at least 1"),
        ("--model gpt-175b --chunks 0", "chunks is 0; it is a whole number of at least 1"),
    ],
)
def test_mistakes_about_splits_get_one_sentence(
    arguments: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_one_sentence(arguments, expected, capsys)
