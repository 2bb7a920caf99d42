"""The programs of the chapters as a notebook shows them: parts of the source, what changed between two, a module."""

import ast
import difflib
import importlib.util
import textwrap
from pathlib import Path
from types import ModuleType

from IPython.display import Markdown

from distlab.runtime.errors import PlainError
from distlab.runtime.lookups import look_up

FOLDER = Path(__file__).parents[2] / "notebooks" / "programs"
"""The programs that chapters launch, a folder for each chapter."""
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class NoSuchProgram(PlainError, FileNotFoundError):
    """There is no such file; the message says from which folder it was looked for."""


def source(program: str | Path, *names: str) -> str:
    """The source of the named functions, methods or classes in the order asked for, with decorators, not indented.

    A method may be named CLASS.METHOD. Without names, the whole file. Raises NoSuchName for a name that is missing,
    NoSuchProgram for a file that is.
    """
    _require_file(program)
    text = Path(program).read_text()
    if not names:
        return text
    definitions, lines, parts = _definitions(text), text.splitlines(), []
    for name in names:
        node = look_up(definitions, name, f"definition in {Path(program).name} called")
        first = min(each.lineno for each in (node, *node.decorator_list))
        parts.append(textwrap.dedent("\n".join(lines[first - 1 : node.end_lineno])))
    return "\n\n\n".join(parts)


def show(program: str | Path, *names: str) -> Markdown:
    """The same as a block of code in colours, or of a job script, which has no such names."""
    _require_file(program)
    language = "python" if Path(program).suffix == ".py" else "bash"
    return Markdown(f"```{language}\n{source(program, *names).strip()}\n```")


def changes(before: str, after: str, context: int = 1) -> Markdown:
    """The lines that differ between two sources, - for those of `before` and + for `after`, as a block in colours."""
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=context))[2:]
    kept = ["…" if line.startswith("@@") else line for line in lines]
    return Markdown("```diff\n" + "\n".join(kept[1:] if kept[:1] == ["…"] else kept) + "\n```")


def module(program: str | Path) -> ModuleType:
    """The program as a module, so that its functions can be called; its `main` does not run. Raises NoSuchProgram."""
    _require_file(program)
    specification = importlib.util.spec_from_file_location(Path(program).stem, program)
    assert specification and specification.loader
    loaded = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(loaded)
    return loaded


def _require_file(program: str | Path) -> None:
    if not Path(program).is_file():
        raise NoSuchProgram(f"There is no file {Path(program).absolute()}.")


def _definitions(text: str) -> dict[str, Definition]:
    """Every function, method and class by its name, in alphabetical order; methods also as CLASS.METHOD."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, Definition)]
    named = {node.name: node for node in nodes}
    for owner in nodes:
        if isinstance(owner, ast.ClassDef):
            named |= {f"{owner.name}.{node.name}": node for node in owner.body if isinstance(node, Definition)}
    return dict(sorted(named.items()))
