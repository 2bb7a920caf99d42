"""The table "strategy × training API": read from the file of `make support-table`, shown as markdown.

`notebooks/programs/08b_keras_3/measure_support.py` writes the file; every cell is a program that ran.
"""

import json
import re
from pathlib import Path
from typing import TypedDict


class SupportCell(TypedDict):
    """A cell as the file has it: its state, the error or difference, and what the reader should know."""

    state: str  # works, fails, wrong result, does not end, no such device, skipped
    detail: str
    notes: list[str]


class StrategyRow(TypedDict):
    """A strategy's name, and as what it was run."""

    name: str
    set_up: str


class Machine(TypedDict):
    """The kind of machine that measured."""

    system: str
    cores: int
    gpus: int


class SupportTable(TypedDict):
    """The file: when, with which versions and where it was measured, its rows and columns, and its cells.

    strategies, apis, kerases: what a reader sees for each key.  cells: by strategy, API and Keras.
    """

    measured: str
    versions: dict[str, str | None]
    machine: Machine
    tolerance: float
    strategies: dict[str, StrategyRow]
    apis: dict[str, str]
    kerases: dict[str, str]
    cells: dict[str, dict[str, dict[str, SupportCell]]]


def read(file: Path | str) -> SupportTable:
    """The table of a file that `make support-table` wrote."""
    return json.loads(Path(file).read_text())


def write(table: SupportTable, file: Path) -> None:
    """Write the file, and next to it the same for readers, with the ending .md."""
    file.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n")
    title = "# Strategy × training API, measured\n\nWritten by `make support-table`.\n\n"
    file.with_suffix(".md").write_text(title + markdown(read(file)) + "\n")


def markdown(table: SupportTable) -> str:
    """The table, its footnotes, and the line that says when and with what it was measured."""
    footnotes: list[str] = []
    columns = [(api, keras) for keras in table["kerases"] for api in table["apis"]]
    headings = [f"{escape(table['apis'][api])}, {escape(table['kerases'][keras])}" for api, keras in columns]
    rows = [["Strategy", "as", *headings]]
    for strategy, described in table["strategies"].items():
        cells = [_marked(table["cells"][strategy][api][keras], footnotes) for api, keras in columns]
        rows.append([f"**{escape(described['name'])}**", escape(described["set_up"]), *cells])
    return "\n\n".join(filter(None, [_grid(rows), _numbered(footnotes), measured_with(table)]))


def measured_with(table: SupportTable) -> str:
    """When the table was measured, with which versions, on what kind of machine, and what "works" means."""
    names = {"python": "Python", "tensorflow": "TensorFlow", "keras": "Keras", "horovod": "Horovod"}
    versions = [f"{names.get(name, name)} {version}" for name, version in table["versions"].items() if version]
    machine = table["machine"]
    gpus = f"{machine['gpus'] or 'no'} GPU{'s' * (machine['gpus'] > 1)}"
    return (
        f"Measured on {table['measured']} with {escape(', '.join(versions))}; {escape(machine['system'])}, "
        f"{machine['cores']} cores, {gpus}. “Works” means: after some steps of SGD no weight differs by more than "
        f"{table['tolerance']:g} from those of the default strategy under the same Keras."
    )


def escape(text: str) -> str:
    """Text as markdown that shows it literally, also inside a table; line ends become spaces."""
    return re.sub(r"([\\`*_\[\]<>|$~#&])", r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Text as a code span, whatever backticks it holds."""
    text = " ".join(text.split())
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    pad = " " * (text[:1] == "`" or text[-1:] == "`")
    return f"{fence}{pad}{text}{pad}{fence}"


def _marked(cell: SupportCell, footnotes: list[str]) -> str:
    """The state with the number of its footnote: the error or difference, and what the reader should know."""
    detail, sentences = cell["detail"], list(cell["notes"])
    if detail:
        is_error = cell["state"] in ("fails", "no such device")
        first = code(detail) if is_error else escape(detail[0].upper() + detail[1:].rstrip("."))
        sentences.insert(0, first if is_error and detail.endswith((".", "…")) else f"{first}.")
    text = " ".join(sentences)
    words = escape(cell["state"]) if cell["state"] == "works" else f"**{escape(cell['state'])}**"
    if not text:
        return words
    if text not in footnotes:  # the same text has one number
        footnotes.append(text)
    return f"{words} ({footnotes.index(text) + 1})"


def _numbered(footnotes: list[str]) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(footnotes, start=1))


def _grid(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])
