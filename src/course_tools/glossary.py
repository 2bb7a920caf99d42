"""Links from the first use of a term in a notebook to its entry in `docs/glossary.md`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode

# Words of every page: a link at each of them would teach nobody anything.
NOT_LINKED = frozenset({"device", "epoch", "step", "worker"})
ENTRY = re.compile(
    r'^<a id="(?P<anchor>[^"]+)"></a>\n\*\*(?P<term>[^*]+)\*\* \(\[\d\d\]\((?P<file>[^)]+)\)\): '
    r"(?P<meaning>.+?)(?=\n\n|\Z)",
    re.MULTILINE | re.DOTALL,
)
# What is not running text: nothing in it becomes a link.
NOT_PROSE = re.compile(
    r"""
      ^```.*?^```                              # code between fences
    | <details>.*?</details>                   # a folded answer, with its question
    | (?:(?<=\n\n)|\A)(?:\ {4}[^\n]*(?:\n|\Z))+ # indented code
    | ^\#+\ [^\n]* | ^\|[^\n]*                 # headings, lines of tables
    | `[^`]+`                                  # code in a line
    | \$\$.*?\$\$ | \$[^$\n]+\$                # formulas
    | !?\[[^\]]*\]\([^)]*\)                    # pictures and links
    | https?://\S+ | <[^>\n]+>                 # addresses, HTML
    """,
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)


@dataclass(frozen=True)
class GlossaryEntry:
    """A term of the glossary: its anchor, the file of the chapter that introduces it, and its meaning."""

    term: str
    anchor: str
    file: str
    meaning: str


def entries(page: Path) -> list[GlossaryEntry]:
    """The entries of the glossary in their order; none where there is no such page."""
    text = page.read_text() if page.is_file() else ""
    return [
        GlossaryEntry(**{**match.groupdict(), "meaning": " ".join(match["meaning"].split())})
        for match in ENTRY.finditer(text)
    ]


def link_first_uses(notebook: NotebookNode, page: Path, address: str) -> None:
    """Make a link of the first use of each term in the prose of a notebook; `address` is the page as it is linked to.

    The opening and the closing block stay as they are: the README quotes the one, and the other lists titles.
    """
    linked = {entry.term.lower(): entry for entry in entries(page) if entry.term not in NOT_LINKED}
    if not linked:
        return
    # The longest come first: in "ring all-reduce" there is no "all-reduce".
    anywhere = re.compile("|".join(pattern(linked[term].term) for term in sorted(linked, key=len, reverse=True)))
    for cell in notebook.cells[1:-1]:
        if cell.cell_type == "markdown":
            cell.source = "".join(_with_links(cell.source, anywhere, linked, address))


def _with_links(text: str, anywhere: re.Pattern[str], linked: dict[str, GlossaryEntry], address: str) -> Iterator[str]:
    """The parts of a text; each term that gets its link is taken out of `linked`."""

    def link(match: re.Match[str]) -> str:
        words = " ".join(match[0].split()).lower()
        forms = words, words.removesuffix("s"), words.removesuffix("es")
        entry = next((linked.pop(form) for form in forms if form in linked), None)
        return f"[{match[0]}]({address}#{entry.anchor})" if entry else match[0]

    end = 0
    for skipped in NOT_PROSE.finditer(text):
        yield anywhere.sub(link, text[end : skipped.start()])
        yield skipped[0]
        end = skipped.end()
    yield anywhere.sub(link, text[end:])


def pattern(term: str) -> str:
    """For the term and its plural as whole words, also over the end of a line, and at the start of a sentence."""
    first, rest = term[0], r"[ \n]".join(map(re.escape, term[1:].split(" ")))
    start = f"[{first}{first.upper()}]" if first.islower() else re.escape(first)
    return rf"(?<![\w-]){start}{rest}(?:e?s)?(?![\w-])"
