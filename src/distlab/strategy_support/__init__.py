"""Which strategy works with which training API: a table whose every cell is a program that ran and was judged.

Chapter 08b's `measure_support.py` runs the cells, `judge` decides each, `read` and `markdown` show the table. It may
import `checks`.
"""

from distlab.strategy_support.table import markdown, read
from distlab.strategy_support.verdict import CellVerdict, MeasuredRun, judge

__all__ = ["CellVerdict", "MeasuredRun", "judge", "markdown", "read"]
