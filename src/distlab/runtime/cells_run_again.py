"""Cells that were run again after a later cell had set a name that they use: they see another value than at first."""

import symtable
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class _Run:
    """The run of a cell: its number in the brackets, what tells the cell from others, the names it sets and uses."""

    number: int
    cell: str
    sets: frozenset[str]
    uses: frozenset[str]


class Runs:
    """The runs of a notebook's cells, in order."""

    def __init__(self) -> None:
        """No cell has run yet."""
        self._runs: list[_Run] = []

    def add(self, number: int, source: str, cell: str | None) -> None:
        """A cell begins to run; `cell` is its id, which stays when it is edited, or None if the front end has none."""
        self._runs.append(_Run(number, cell or source, *_names(source)))

    def cause(self) -> str | None:
        """Why the cell that runs may fail, in a sentence: it or another has been run again with a name set again.

        None if it runs for the first time, or if every cell saw the names as it did at first.
        """
        if not self._runs or self._first(self._runs[-1].cell) == len(self._runs) - 1:
            return None
        last = {run.cell: place for place, run in enumerate(self._runs)}
        for place in sorted(last.values(), reverse=True):
            for name in sorted(self._runs[place].uses):
                if setters := self._changed(name, place):
                    before, after = setters
                    return (
                        f"Cell [{self._runs[place].number}] was run again, but `{name}` is no longer what cell "
                        f"[{before}] has made, since cell [{after}] has set it: if that is the reason, run all cells "
                        f"from [{before}] on again."
                    )
        return None

    def _changed(self, name: str, place: int) -> tuple[int, int] | None:
        """The numbers of the cells that had set the name when a cell first ran, and, further down, before this run."""
        first = self._first(self._runs[place].cell)
        before, after = self._setter(name, first), self._setter(name, place)
        if before is None or after is None or self._first(after.cell) <= first:
            return None
        return before.number, after.number

    def _setter(self, name: str, place: int) -> _Run | None:
        return next((run for run in reversed(self._runs[:place]) if name in run.sets), None)

    def _first(self, cell: str) -> int:
        return next(place for place, run in enumerate(self._runs) if run.cell == cell)


def _names(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a cell sets, imports apart, and those of others that it uses; none if it is not Python."""
    try:
        top = symtable.symtable(source, "cell", "exec")
    except (SyntaxError, ValueError):
        return frozenset(), frozenset()
    sets = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() and not symbol.is_imported()}
    uses = {
        symbol.get_name()
        for table in _tables(top)
        for symbol in table.get_symbols()
        if symbol.is_referenced() and symbol.is_global()
    }
    return frozenset(sets), frozenset(uses - sets)


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)
