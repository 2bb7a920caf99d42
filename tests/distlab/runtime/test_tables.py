"""Tables as aligned text and as Markdown."""

import shlex
import subprocess

from distlab.runtime import tables

HEADER = ("name", "seconds")
ROWS = [("ring", 1.5), ("tree, on one host", 12)]


def test_columns_of_text_are_as_wide_as_their_widest_cell_and_numbers_can_be_aligned_to_the_right() -> None:
    assert tables.text(HEADER, ROWS).splitlines() == [
        "name               seconds",
        "ring               1.5",
        "tree, on one host  12",
    ]
    assert tables.text(HEADER, ROWS, right=[1], gap=" | ").splitlines() == [
        "name              | seconds",
        "ring              |     1.5",
        "tree, on one host |      12",
    ]


def test_markdown_has_a_rule_that_says_how_columns_are_aligned() -> None:
    assert tables.markdown(HEADER, ROWS, right=[1]).splitlines() == [
        "| name | seconds |",
        "| --- | ---: |",
        "| ring | 1.5 |",
        "| tree, on one host | 12 |",
    ]


def test_a_long_command_breaks_before_options_and_means_the_same() -> None:
    command = "srun --nodes=2 --ntasks-per-node=8 --gpus-per-task=1 --label bash -c 'echo rank $SLURM_PROCID and  done'"
    typed = tables.as_typed(command)
    assert typed.count("\n") == 1 and max(map(len, typed.split("\n"))) <= 95
    shown = subprocess.run(["bash", "-c", f"printf '%s\n' {typed}"], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines() == shlex.split(command)
    assert tables.as_typed("squeue --me") == "squeue --me"
