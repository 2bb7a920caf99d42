"""The reference, read from the source, agrees with the modules as they are imported."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from course_tools.site import reference


@pytest.mark.parametrize("name", ["distlab.collectives", "distlab.simulate", "distlab.costs", "distlab.metrics"])
def test_a_module_has_the_names_and_arguments_that_python_sees(name: str, root: Path) -> None:
    described = reference.module(root / "src", name)
    imported = importlib.import_module(name)
    members = {member.name: member for member in described.members}
    public = getattr(imported, "__all__", None) or [
        each for each, value in vars(imported).items() if inspect.getmodule(value) is imported and each[0] != "_"
    ]
    assert set(public) - {each for each in public if inspect.ismodule(getattr(imported, each))} <= set(members)
    functions = {each for each in public if inspect.isfunction(getattr(imported, each))}
    assert functions
    for each in functions:
        function = getattr(imported, each)
        definition = members[each].definition
        assert reference.argument_names(definition) == set(inspect.signature(function).parameters), each
        assert inspect.cleandoc(members[each].text) == inspect.getdoc(function)


@pytest.mark.slow
def test_every_module_that_a_notebook_imports_has_a_page(root: Path) -> None:
    pages = reference.pages(root)
    used = set()
    for file in (root / "notebooks" / "src").glob("*.py"):
        used |= set(re.findall(r"^from (distlab\.\w+) import", file.read_text(), re.MULTILINE))
    assert used and used <= set(pages)
    assert all(f"[{name}]({name}.md)" in pages["index"] for name in used)


@pytest.mark.slow
def test_a_module_that_a_notebook_reaches_through_its_package_is_on_the_package_s_page(root: Path) -> None:
    pages = reference.pages(root)
    messages = pages["distlab.profiling"].partition("py:currentmodule} distlab.profiling.messages\n")[2]
    assert "py:function} between_devices(" in messages
    assert not [name for name in reference.reached(root) if name.startswith("distlab.metrics.")]
    assert pages["distlab.collectives"].count("py:class} Update(") == 1


def test_arguments_are_a_list_and_marks_of_markdown_stay_as_they_are(tmp_path: Path) -> None:
    package = tmp_path / "src" / "distlab"
    package.mkdir(parents=True)
    text = (
        'def scale(array: "Array", *more: int, by_two: bool = True) -> "Array":\n    """Scale a*b*c, `x_y` of <it>.\n\n'
    )
    text += '    array: what to scale.\n    by_two: or not.\n    note: no argument.\n    """\n'
    (package / "arrays.py").write_text(text)
    described = reference.module(tmp_path / "src", "distlab.arrays")
    page = reference.page(described)
    assert "{py:currentmodule} distlab.arrays" in page
    assert "{py:function} scale(array: Array, *more: int, by_two: bool=True) -> Array" in page
    assert r"Scale a\*b\*c, `x_y` of \<it>." in page
    assert "- `array`: what to scale." in page and "- `by_two`: or not." in page
    assert "- `note`" not in page
