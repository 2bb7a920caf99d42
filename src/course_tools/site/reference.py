"""The reference of what students import: a page for each module of `distlab`, whose names Sphinx's autodoc describes.

`write` lists the names; those of the modules that a package offers are on the package's page. Docstrings are Markdown,
as they are read in an editor; `as_markup` makes of them what autodoc expects.
"""

import ast
import importlib
import inspect
import pkgutil
import re
import symtable
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType

from sphinx.application import Sphinx

import distlab

INTRODUCTION = """# What you import

The modules of `distlab`, with every name that they offer to notebooks, labs and programs.

```{toctree}
:hidden:
"""
# What is said of an argument or a field, as in "size: the number of ranks."
ARGUMENT = re.compile(r"^((?:\\\*){0,2}\w+(?:, (?:\\\*){0,2}\w+)*): +")
ARRAY_LIKE = re.compile(r"[~\w.]*_Buffer \| .*? \| [~\w.]*_NestedSequence\[complex \| bytes \| str\]")
LONGEST_VALUE = 60  # of a constant that the page shows
LIST_ITEM = re.compile(r" *(?:[-*]|\d+\.) ")
# Code, and what outside of code would begin emphasis, links and replacements.
CODE_OR_MARK = re.compile(r"`[^`]+`|[\\*|]|(?<=\w)_(?!\w)")


def write(folder: Path) -> None:
    """Write the reference to `folder`, as Markdown pages; the first is index.md."""
    folder.mkdir(parents=True, exist_ok=True)
    names, rows = [], []
    for name in sorted(f"distlab.{found.name}" for found in pkgutil.iter_modules(distlab.__path__)):
        package = importlib.import_module(name)
        own = public_names(package)
        offered = [getattr(package, each) for each in getattr(package, "__all__", [])]
        modules = [each for each in offered if inspect.ismodule(each)]
        if not own and not modules:
            continue
        text = f"# {name}\n\n{_entries(package, own)}"
        for module in modules:
            more = [each for each in public_names(module) if each not in own]
            text += f"\n## {module.__name__.removeprefix('distlab.')}\n\n{_entries(module, more)}"
        (folder / f"{name}.md").write_text(text)
        names.append(name)
        first = (inspect.getdoc(package) or "").split("\n\n")[0]
        rows.append(f"- [{name}]({name}.md): {' '.join(first.split())}")
    (folder / "index.md").write_text("\n".join([INTRODUCTION, *names, "```", "", *rows, ""]))


def public_names(module: ModuleType) -> list[str]:
    """The names that a module offers: those of its `__all__`, or else what it defines itself; no modules."""
    table = symtable.symtable(inspect.getsource(module), str(module.__file__), "exec")
    defined = [name.get_name() for name in table.get_symbols() if name.is_assigned() and not name.is_imported()]
    names = getattr(module, "__all__", [name for name in defined if name in vars(module) and not name.startswith("_")])
    return [name for name in names if not inspect.ismodule(getattr(module, name))]


def _entries(module: ModuleType, names: list[str]) -> str:
    """The text of a module, and a directive of autodoc for each of the names."""
    imports = [node for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.ImportFrom)]
    origins = {alias.name: f"{node.module}.{alias.name}" for node in imports for alias in node.names}
    directives = [f".. automodule:: {module.__name__}"]
    for name in names:
        value, full_name = getattr(module, name), f"{module.__name__}.{name}"
        if inspect.isclass(value):
            directives += ["", f".. autoclass:: {full_name}", "   :members:", "   :undoc-members:"]
        elif inspect.isroutine(value):
            directives += ["", f".. autofunction:: {full_name}"]
        else:  # the text of a constant stands where it is defined
            directives += ["", f".. autodata:: {origins.get(name, full_name)}"]
            directives += ["   :no-value:"] if len(repr(value)) > LONGEST_VALUE else []
    return "\n".join(["```{eval-rst}", *directives, "```", ""])


def leave_out_fields(
    application: Sphinx, what: str, name: str, value: object, skip: bool, options: object
) -> bool | None:
    """Called by autodoc for each member of a class; its fields are in its signature already."""
    return None if callable(value) or isinstance(value, property | cached_property) else True


def with_array_like(
    application: Sphinx, what: str, name: str, value: object, options: object, signature: str | None, result: str | None
) -> tuple[str, str | None] | None:
    """Called by autodoc for each signature; gives NumPy's long union of types its name."""
    return (ARRAY_LIKE.sub("ArrayLike", signature), result) if signature else None


def as_markup(application: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Called by autodoc for each docstring; changes its lines from Markdown into reStructuredText."""
    try:
        arguments = set(inspect.signature(value).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):  # a module, a value
        arguments = set()
    is_of_type = what == "data" and inspect.getdoc(value) == inspect.getdoc(type(value))
    text, lines[:] = "" if is_of_type else "\n".join(lines), []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if block.startswith("    "):  # code
            lines += ["::", "", *block.split("\n"), ""]
        else:
            lines += [*_paragraph(block, arguments), ""]


def _paragraph(block: str, arguments: set[str]) -> Iterator[str]:
    """The lines of a paragraph or list; what is said of an argument becomes an item of a list."""
    text = CODE_OR_MARK.sub(lambda found: f"`{found[0]}`" if found[0][0] == "`" else f"\\{found[0]}", block)
    indent = ""
    for number, line in enumerate(text.split("\n")):
        told = ARGUMENT.match(line)
        if told and {name.strip("\\* ") for name in told[1].split(",")} <= arguments:
            line, indent = f"- {told[1]}: {line[told.end() :]}", "  "
        else:
            line = indent + line
        if number and LIST_ITEM.match(line):
            yield ""
        yield line
