"""Which strategy works with which training API: a table whose every cell is a program that ran and was judged.

Chapter 08's `measure_support.py` runs the cells, `judge` decides each, `write` and `read` keep the table's
file, `markdown` and `then_and_now` show it. It may import runtime and `checks`. Begin with `read` and `markdown`.
"""

from distlab.strategy_support.table import (
    SupportCell,
    SupportTable,
    markdown,
    read,
    then_and_now,
    write,
)
from distlab.strategy_support.verdict import CellVerdict, MeasuredRun, first_line_of_error, judge

__all__ = [
    "CellVerdict",
    "MeasuredRun",
    "SupportCell",
    "SupportTable",
    "first_line_of_error",
    "judge",
    "markdown",
    "read",
    "then_and_now",
    "write",
]
