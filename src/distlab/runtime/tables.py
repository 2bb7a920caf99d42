"""Tables as text: aligned columns for a terminal or a cell, and Markdown for pages and documents; long commands."""

import re
from collections.abc import Sequence

Row = Sequence[object]


def text(header: Row, rows: Sequence[Row], right: Sequence[int] = (), gap: str = "  ") -> str:
    """Aligned columns, one line per row; `right` are the numbers (from 0) of the columns aligned to the right.

    Without a gap the header has the blanks between columns; a cell as wide as its header still keeps one.
    """
    lines = [[str(cell) for cell in row] for row in (header, *rows)]
    if not gap:
        blanks = [" " * (number in right and number > 0) for number in range(len(header))]
        lines[1:] = [[blank + cell for blank, cell in zip(blanks, line, strict=True)] for line in lines[1:]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        gap.join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def markdown(header: Row, rows: Sequence[Row], right: Sequence[int] = ()) -> str:
    """A Markdown table; `right` are the numbers (from 0) of the columns aligned to the right."""
    rule = ["---:" if number in right else "---" for number in range(len(header))]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in (header, rule, *rows))


def as_typed(command: str, width: int = 95) -> str:
    """A shell command, in lines of at most `width` columns where breaks before options allow that."""
    lines = [""]
    for part in re.split(r" (?=--?[a-z])", command):
        if lines[-1] and len(lines[-1]) + len(part) + 3 > width:
            lines.append("   ")
        lines[-1] += f" {part}" if lines[-1] else part
    return " \\\n".join(lines)
