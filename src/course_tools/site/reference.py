"""Reference pages of what students import: signatures and docstrings, read from the source without importing it."""

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
NAMES = re.compile(r"^((?:\\?\*){0,2}[\w\\]+(?:, (?:\\?\*){0,2}[\w\\]+)*): ", re.MULTILINE)
# Markdown would take these for emphasis, formulas or HTML; between backticks they stay.
MARKS = re.compile(r"(`[^`]*`|^ {4}[^\n]*$)|([*_$<])", re.MULTILINE)
INTRODUCTION = """# What you import

The modules of `distlab` that notebooks and labs use, with every name that they offer.

```{toctree}
:hidden:
"""


@dataclass
class Member:
    """A public name of a module: how it is defined, or the value that is assigned to it, and what is said of it."""

    name: str
    definition: Definition | ast.expr
    text: str = ""


@dataclass
class Module:
    """A module: its docstring and its public names, in order; of a package also the modules that students reach."""

    name: str
    text: str = ""
    members: list[Member] = field(default_factory=list)
    modules: list["Module"] = field(default_factory=list)


def pages(course: Path) -> dict[str, str]:
    """The reference of the course in `course` as Markdown pages, by their names; `index` is the first."""
    modules = [module(course / "src", name) for name in imported(course)]
    within = reached(course)
    for package in modules:
        package.modules = _modules(course, package, within)
    rows = [f"- [{each.name}]({each.name}.md): {_first_line(each.text)}" for each in modules]
    contents = "\n".join([INTRODUCTION, *(each.name for each in modules), "```"])
    return {each.name: page(each) for each in modules} | {"index": "\n".join([contents, "", *rows, ""])}


def imported(course: Path) -> list[str]:
    """The modules that notebooks and labs import from distlab, in order of the alphabet."""
    names = set()
    for tree in _student_code(course):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "distlab":
                names |= {f"distlab.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("distlab."):
                names.add(str(node.module))
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names if alias.name.startswith("distlab.")}
    return sorted(names)


def _modules(course: Path, package: Module, within: list[str]) -> list[Module]:
    """The modules of a package that are `within` what is reached, with the names that the package has not itself."""
    own = {member.name for member in package.members}
    modules = [module(course / "src", name) for name in within if name.startswith(f"{package.name}.")]
    for each in modules:
        each.members = [member for member in each.members if member.name not in own]
    return [each for each in modules if each.members]


def reached(course: Path) -> list[str]:
    """The modules that notebooks and labs name by their package, as in `profiling.messages.between_devices`."""
    names = {
        f"distlab.{node.value.id}.{node.attr}"
        for tree in _student_code(course)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    return [name for name in sorted(names) if _file(course / "src", name).is_file()]


def _student_code(course: Path) -> list[ast.Module]:
    files = sorted([*course.glob("notebooks/src/*.py"), *course.glob("labs/*/lab.py")])
    return [ast.parse(file.read_text()) for file in files]


def module(source: Path, name: str) -> Module:
    """The module of that name; `source` is the folder that holds the package. Its names are those of its `__all__`."""
    file = _file(source, name)
    tree = ast.parse(file.read_text())
    defined = {member.name: member for member in _defined(tree)}
    public = _all_of(tree) or [member for member in defined if not member.startswith("_")]
    origins = {
        alias.asname or alias.name: (str(node.module), alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("distlab")
        for alias in node.names
    }
    members = []
    for each in public:
        if each in defined:
            members.append(defined[each])
        elif each in origins:
            members += _imported_member(source, each, *origins[each])
    return Module(name, ast.get_docstring(tree) or "", members)


def _imported_member(source: Path, name: str, origin: str, original: str) -> list[Member]:
    """The member that a package imports from one of its modules; none for a module."""
    if (source / Path(*origin.split("."), original)).is_dir() or _file(source, f"{origin}.{original}").is_file():
        return []
    return [
        Member(name, member.definition, member.text)
        for member in module(source, origin).members
        if member.name == original
    ]


def _file(source: Path, name: str) -> Path:
    path = source.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _all_of(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == "__all__" for to in node.targets):
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def _defined(tree: ast.Module) -> Iterator[Member]:
    """What the module itself defines: functions, classes, and values with the text below them."""
    for node, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, Definition):
            yield Member(node.name, node, ast.get_docstring(node) or "")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id != "__all__":
                is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
                text = str(following.value.value) if is_text else ""  # type: ignore[union-attr]
                yield Member(target.id, node.value, inspect.cleandoc(text))


def page(described: Module) -> str:
    """The page of a module in Markdown: its text, and an entry for each of its names; then those of its modules."""
    parts = [f"# {described.name}", *_contents(described)]
    for each in described.modules:
        parts += [f"## {each.name.removeprefix('distlab.')}", *_contents(each)]
    return "\n\n".join(parts) + "\n"


def _contents(described: Module) -> list[str]:
    """The text of a module and its entries; the first directive says to Sphinx whose names they are."""
    text = _markdown(described.text, set())
    return [text, f"```{{py:currentmodule}} {described.name}\n```", *map(_entry, described.members)]


def _entry(member: Member) -> str:
    """The entry of a function, class or value, as a directive of Sphinx's domain for Python."""
    name = member.name
    if isinstance(member.definition, ast.ClassDef):
        return _class(name, member.definition)
    if isinstance(member.definition, ast.FunctionDef | ast.AsyncFunctionDef):
        return _function("py:function", name, member.definition)
    value = ast.unparse(member.definition)
    option = f":value: {value}\n" if len(value) <= 60 else ""
    return f"```{{py:data}} {name}\n{option}\n{_markdown(member.text, set())}\n```"


def _class(name: str, definition: ast.ClassDef) -> str:
    methods = [node for node in definition.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    start = next((method for method in methods if method.name == "__init__"), None)
    fields = [node for node in definition.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    is_dataclass = any("dataclass" in ast.unparse(mark) for mark in definition.decorator_list)
    is_tuple = any(ast.unparse(base) == "NamedTuple" for base in definition.bases)
    arguments = ""
    if start:
        arguments = f"({_arguments(start, is_method=True)})"
    elif is_dataclass or is_tuple:
        arguments = f"({', '.join(_unquoted(ast.unparse(node)) for node in fields)})"
    names = {ast.unparse(node.target) for node in fields} | (argument_names(start) if start else set())
    docstrings = [ast.get_docstring(node) for node in (definition, start) if node is not None]
    text = "\n\n".join(filter(None, docstrings))
    parts = [f"````{{py:class}} {name}{arguments}\n", _markdown(text, names)]
    for method in methods:
        if not method.name.startswith("_"):
            marks = {ast.unparse(mark) for mark in method.decorator_list}
            is_property = bool(marks & {"property", "cached_property", "functools.cached_property"})
            kind = "py:property" if is_property else "py:method"
            options = (
                ":classmethod:\n" if "classmethod" in marks else ":staticmethod:\n" if "staticmethod" in marks else ""
            )
            parts.append(_function(kind, method.name, method, options, is_method="staticmethod" not in marks))
    return "\n\n".join(parts) + "\n````"


def _function(
    kind: str, name: str, definition: ast.FunctionDef | ast.AsyncFunctionDef, options: str = "", is_method: bool = False
) -> str:
    result = f" -> {_unquoted(ast.unparse(definition.returns))}" if definition.returns else ""
    signature = f"({_arguments(definition, is_method)}){result}"
    if kind == "py:property":
        signature, options = "", f":type: {result.removeprefix(' -> ')}\n" if result else ""
    if isinstance(definition, ast.AsyncFunctionDef):
        options += ":async:\n"
    text = _markdown(ast.get_docstring(definition) or "", argument_names(definition))
    return f"```{{{kind}}} {name}{signature}\n{options}\n{text}\n```"


def _arguments(definition: ast.FunctionDef | ast.AsyncFunctionDef, is_method: bool) -> str:
    text = _unquoted(ast.unparse(definition.args))
    return re.sub(r"^(self|cls)(, )?", "", text) if is_method else text


def argument_names(definition: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names of a function's arguments."""
    every = definition.args
    arguments = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
    return {argument.arg for argument in arguments if argument is not None}


def _unquoted(signature: str) -> str:
    """Annotations that are quoted in the source, since they are imported for types only, without their quotes."""
    return re.sub(r"(: |-> |^)'([^']+)'", r"\1\2", signature)


def _markdown(text: str, names: set[str]) -> str:
    """A docstring as Markdown: what it says of each of `names` becomes an item of a list."""
    escaped = MARKS.sub(lambda match: match[1] or f"\\{match[2]}", text)

    def item(match: re.Match[str]) -> str:
        plain = match[1].replace("\\", "")
        is_list = all(name.lstrip("*") in names for name in plain.split(", "))
        return f"- `{plain}`: " if is_list else match[0]

    lines = NAMES.sub(item, escaped)
    # A list begins after an empty line.
    return re.sub(r"(?<=[^\n])\n(?=- `)", "\n", lines)


def _first_line(text: str) -> str:
    return _markdown(" ".join(text.split("\n\n")[0].split()), set())
