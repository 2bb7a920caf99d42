"""What the programs' command lines refuse before anything has trained, and how they say it."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from distlab import valid
from distlab.runtime import processes
from tests import small_disks


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (valid.count, "1", 1),
        (valid.count, " 20", 20),
        (valid.index, "0", 0),
        (valid.seed, "0", 0),
        (valid.seed, "4294967295", 2**32 - 1),
        (valid.rate, "1e-3", 1e-3),
        (valid.amount, "0", 0.0),
    ],
)
def test_what_can_work_is_taken(kind: Callable[[str], object], text: str, value: float) -> None:
    assert kind(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *[(valid.count, text) for text in ("0", "-1", "1.5", "many", "")],
        *[(valid.index, text) for text in ("-1", "0.5", "first")],
        *[(valid.seed, text) for text in ("-1", "4294967296", "x", "1e3")],
        *[(valid.rate, text) for text in ("0", "-0.1", "nan", "inf", "1e999", "fast")],
        *[(valid.amount, text) for text in ("-0.1", "nan", "inf", "long")],
        *[(valid.existing, text) for text in ("none.txt", "none-*.txt", "..")],
    ],
)
def test_what_cannot_work_ends_in_a_sentence_that_names_the_option(
    kind: Callable[[str], object], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--option", type=kind)
    with pytest.raises(SystemExit) as ended:
        parser.parse_args([f"--option={text}"])
    last_line = capsys.readouterr().err.splitlines()[-1]
    assert ended.value.code == 2
    assert "error: argument --option: " in last_line
    assert text in last_line


def test_a_file_to_write_has_a_folder_and_is_none(tmp_path: Path) -> None:
    assert valid.output(str(tmp_path / "result.json")) == tmp_path / "result.json"
    for wrong, sentence in (
        (tmp_path, "is a folder, and a file will be written"),
        (tmp_path / "missing" / "result.json", "there is no folder"),
        (tmp_path / "train.py", "train.py' is a program, which would be overwritten"),
        ("", "'' names no file; give the name of a file"),
        ("-", "'-' names no file"),
    ):
        with pytest.raises(argparse.ArgumentTypeError, match=sentence):
            valid.output(str(wrong))


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"^'' names no folder; for the current one write \.$"):
        valid.folder("")
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    assert valid.folder(str(tmp_path / "new")) == tmp_path / "new"
    with pytest.raises(argparse.ArgumentTypeError, match="is a file, and a folder is needed"):
        valid.folder(str(tmp_path / "file"))
    for place in ("link", "link/folder"):
        with pytest.raises(argparse.ArgumentTypeError, match="link is a link to nowhere, which does not exist"):
            valid.folder(str(tmp_path / place))


@pytest.mark.parametrize("name", ["lr=0.1[a]", "what?", "all*", "back\\slash", "run[1]/saved"])
def test_a_folder_whose_checkpoints_tensorflow_would_not_find_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="which TensorFlow takes for a pattern"):
        valid.folder(str(tmp_path / name))


@small_disks.needs_mounts
def test_a_folder_on_a_disk_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    code = f"from distlab import valid; valid.folder({str(tmp_path / 'new' / 'saved')!r})"
    finished = processes.run(small_disks.with_disk(tmp_path, "ro", [sys.executable, "-c", code]), 300)
    assert finished.output.endswith(f"/new/saved cannot be written: {tmp_path} does not allow it\n")


def test_a_folder_is_in_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(argparse.ArgumentTypeError, match=r"saved cannot be written: .*file is a file$"):
        valid.folder(str(tmp_path / "file" / "saved"))


def test_a_file_to_read_is_there(tmp_path: Path) -> None:
    (tmp_path / "numbers-[1].txt").touch()
    assert valid.existing(str(tmp_path / "numbers-[1].txt")) == tmp_path / "numbers-[1].txt"
    for wrong, sentence in (
        (tmp_path / "numbers-*.txt", r"\*\.txt is a pattern that the shell has replaced by no file; give the path"),
        (tmp_path / "none.txt", r"none\.txt does not exist; give the path of a file, from "),
        (tmp_path, "is a folder, and a file is needed"),
        ("", "'' names no file"),
    ):
        with pytest.raises(argparse.ArgumentTypeError, match=sentence):
            valid.existing(str(wrong))


def test_a_tilde_that_the_shell_has_left_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert valid.folder("~/saved") == tmp_path / "saved"
    assert valid.output("~/result.json") == tmp_path / "result.json"
    for kind in (valid.folder, valid.output):
        with pytest.raises(argparse.ArgumentTypeError, match=r"^~nobody-here/saved begins with ~, and there is no"):
            kind("~nobody-here/saved")


def test_a_file_to_write_is_no_link_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "result.json").symlink_to("gone/result.json")
    with pytest.raises(argparse.ArgumentTypeError, match=r"is a link to gone/result\.json, which does not exist"):
        valid.output(str(tmp_path / "result.json"))


@small_disks.needs_mounts
def test_a_full_disk_leaves_the_older_result_as_it_is(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from distlab import valid
file = valid.output({str(tmp_path / "result.json")!r})
file.write_text("older")
try:
    file.write_text("x" * 200_000)
except OSError as error:
    print(error)
print(Path(file).read_text(), [each.name for each in Path(file).parent.iterdir()])
"""
    finished = processes.run(small_disks.with_disk(tmp_path, "size=64k", [sys.executable, "-c", code]), 300)
    assert finished.output.splitlines() == [
        f"[Errno 28] No space left on device: '{tmp_path}/result.json'",
        "older ['result.json']",
    ]


def test_a_result_keeps_the_rights_and_the_link_of_the_file_that_it_replaces(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("older")
    (tmp_path / "real.json").chmod(0o640)
    (tmp_path / "result.json").symlink_to("real.json")
    valid.output(str(tmp_path / "result.json")).write_text("newer")
    assert (tmp_path / "result.json").is_symlink()
    assert (tmp_path / "real.json").read_text() == "newer"
    assert (tmp_path / "real.json").stat().st_mode & 0o777 == 0o640
    assert len(list(tmp_path.iterdir())) == 2
    valid.output("/dev/null").write_text("nowhere")
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--result", "a", "--saved-in", "a"],
            "error: --result and --saved-in are the same path, a; choose another one",
        ),
        (
            ["--result", "a", "--saved-in", "link/../a/b"],
            "error: --saved-in link/../a/b lies in --result a, which will",
        ),
        (
            ["--result", "a", "--weights", "./a"],
            "error: --result and --weights are the same path, a; choose another one",
        ),
        (
            ["--result", "read", "--given", "read"],
            "error: --result and --given are the same path, read; choose another",
        ),
        (["--result", "a.json", "--weights", "a.npz", "--saved-in", "a", "--given", "read"], ""),
        (["--result", "there/a", "--saved-in", "there"], ""),
        (["--result", "/dev/null", "--weights", "/dev/null"], ""),
        ([], ""),
    ],
)
def test_paths_that_are_in_each_other_s_way_are_refused(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    (tmp_path / "read").touch()
    parser = argparse.ArgumentParser()
    parser.add_argument("--result", type=valid.output)
    parser.add_argument("--weights", type=valid.output)
    parser.add_argument("--saved-in", type=valid.folder)
    parser.add_argument("--given", type=valid.existing)
    options = parser.parse_args(arguments)
    if not sentence:
        valid.check_paths(parser, options)
        return
    with pytest.raises(SystemExit):
        valid.check_paths(parser, options)
    assert sentence in capsys.readouterr().err.splitlines()[-1]
