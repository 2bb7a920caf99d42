"""The table "strategy × training API": read from the file of `make support-table`, shown as markdown."""

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

Table = dict[str, Any]
"""The file: `strategies` (`name` and `set_up` of each), `apis` and `kerases` (what a reader sees for each key);
`cells`, by these three keys, with `state`, `detail` (an error or difference) and `notes`; when, with which `versions`,
on what `machine` and to what `tolerance` it was `measured`."""

_NAMES = {"python": "Python", "tensorflow": "TensorFlow", "keras": "Keras", "horovod": "Horovod"}


def read(file: Path | str) -> Table:
    """The table of a file that `make support-table` wrote."""
    return dict(json.loads(Path(file).read_text()))


def markdown(table: Table) -> str:
    """The table, its footnotes, and the line that says when and with what it was measured."""
    footnotes: list[str] = []
    columns = list(product(table["kerases"], table["apis"]))
    rows = [["Strategy", "as", *(f"{table['apis'][api]}, {table['kerases'][keras]}" for keras, api in columns)]]
    for strategy, described in table["strategies"].items():
        cells = [_marked(table["cells"][strategy][api][keras], footnotes) for keras, api in columns]
        rows.append([f"**{described['name']}**", described["set_up"], *cells])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    numbered = [f"{number}. {text}" for number, text in enumerate(footnotes, start=1)]
    return "\n".join([*lines, "", *numbered, "", _measured_with(table)])


def _measured_with(table: Table) -> str:
    """When the table was measured, with which versions, on what kind of machine, and what "works" means."""
    versions = [f"{_NAMES.get(name, name)} {version}" for name, version in table["versions"].items() if version]
    machine = table["machine"]
    gpus = f"{machine['gpus'] or 'no'} GPU{'s' * (machine['gpus'] > 1)}"
    return (
        f"Measured on {table['measured']} with {', '.join(versions)}; {_literal(machine['system'])}, "
        f"{machine['cores']} cores, {gpus}. “Works” means: after some steps of SGD no weight differs by more than "
        f"{table['tolerance']:g} from those of the default strategy under the same Keras."
    )


def _literal(text: str) -> str:
    """Text as markdown that shows it literally, also inside a table; line ends become spaces."""
    return re.sub(r"([\\`*_\[\]<>|$~#&])", r"\\\1", " ".join(text.split()))


def _marked(cell: dict[str, Any], footnotes: list[str]) -> str:
    """The state with the number of its footnote: the error or difference, and what the reader should know."""
    state, detail, sentences = cell["state"], cell["detail"], list(cell["notes"])
    if detail and state in ("fails", "no such device"):
        error = detail.replace("`", "'")
        sentences.insert(0, f"`{error}`" + "." * (not detail.endswith((".", "…"))))
    elif detail:
        sentences.insert(0, f"{_literal(detail[0].upper() + detail[1:].rstrip('.'))}.")
    words, text = state if state == "works" else f"**{state}**", " ".join(sentences)
    if not text:
        return words
    if text not in footnotes:  # the same text has one number
        footnotes.append(text)
    return f"{words} ({footnotes.index(text) + 1})"
