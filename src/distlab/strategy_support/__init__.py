"""Which strategy works with which training API: a table whose every cell is a program that ran and was judged.

Chapter 08b's `measure_support.py` runs the cells, `judge` decides each, `write` and `read` keep the table's
file, `markdown` shows it. It may import runtime and `checks`. Begin with `read` and `markdown`.
"""

from distlab.strategy_support.table import (
    SupportCell,
    SupportTable,
    markdown,
    read,
    write,
)
from distlab.strategy_support.verdict import CellVerdict, MeasuredRun, judge

__all__ = [
    "CellVerdict",
    "MeasuredRun",
    "SupportCell",
    "SupportTable",
    "judge",
    "markdown",
    "read",
    "write",
]
