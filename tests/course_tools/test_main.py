"""The command line as a whole: every command with its options, and its exit statuses."""

import re
import sys
from pathlib import Path
from unittest import mock

import pytest

from course_tools import __main__ as cli
from distlab.runtime import processes
from distlab.runtime.errors import PlainError


def test_every_option_says_what_it_does() -> None:
    lines = re.findall(r"^\* .*", cli.app.generate_docs(), re.MULTILINE)
    assert [line for line in lines if not re.match(r"\* \[?`[^`]+`(\(.+?\)|\]\(.+?\))?: \S", line)] == []


def test_the_documents_name_only_options_that_there_are(root: Path) -> None:
    sections = re.split(r"^#+ distlab ", cli.app.generate_docs(), flags=re.MULTILINE)[1:]
    options = {each.split("\n")[0]: {*re.findall(r"^\* `(--[a-z-]+)", each, re.MULTILINE)} for each in sections}
    longest_first = sorted(options, key=len, reverse=True)
    files = [root / "README.md", *root.glob("docs/*.md"), *root.glob("*/src/*.py"), *root.glob("src/**/*.py")]
    call = r"`(?:\.venv/bin/)?distlab ([a-z][^`\n]*)`"
    calls = [words for file in files for words in re.findall(call, file.read_text())]
    assert len(calls) > 30
    for words in calls:
        own = words.partition(" -- ")[0]
        name = next((name for name in longest_first if f"{own} ".startswith(f"{name} ")), None)
        assert name, words
        assert {*re.findall(r"(?<!\S)--[a-z-]+", own)} <= options[name] | {"--help"}, words


def test_its_help_needs_none_of_the_packages_that_do_the_work() -> None:
    run = "import sys\nfrom course_tools import __main__\n__main__.main(['--help'])\n"
    code = f"{run}print({{'numpy', 'nbformat'}} & {{*sys.modules}})"
    finished = processes.run([sys.executable, "-c", code], 300)
    assert finished.output.endswith("set()\n")


def test_help_is_also_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["help"]) == 0
    assert "Study" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("execute --workers 9", "Must be <= 8"),
        ("launch train.py --epochs 3", "stand after `--`"),
        ("check", "Example: `distlab check 06`"),
        ("predikt", "There is no command 'predikt'; did you mean predict?\n"),
        ("cluster xyz", "There is no command 'xyz'; there are up, run, status, link, down.\n"),
    ],
)
def test_a_wrong_option_or_command_ends_with_status_2(
    command: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(command.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and said in printed.err


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [(PlainError("No such lab."), 2, "No such lab.\n"), (KeyboardInterrupt(), 130, "\nInterrupted.\n")],
)
def test_what_ends_a_command_is_a_sentence_and_a_status(
    error: BaseException, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with mock.patch("course_tools.lab_sources.chosen", side_effect=error):
        assert cli.main(["labs"]) == status
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize("command", ["execute", "site", "labs", "grade .", "progress"])
def test_outside_the_course_a_command_does_nothing(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processes, "end_on_signals", lambda: None)
    monkeypatch.chdir(tmp_path)
    assert cli.main(command.split()) == 2
    assert capsys.readouterr().err.startswith("There is no ")
    assert not list(tmp_path.iterdir())
