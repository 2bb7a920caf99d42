"""The pictures of the pages: smaller files that look the same, loaded when the reader comes near, with room kept."""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from course_tools.site import paths

SVG, LINK = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
GROUP, METADATA, STYLE = (f"{{{SVG}}}{tag}" for tag in ("g", "metadata", "style"))
# matplotlib's text of a licence; `smaller` leaves it out, so that what has it has not been made smaller.
MARK_OF_A_LARGE_FILE = "<metadata>"
SIZE = re.compile(r'<svg[^>]*? width="([\d.]+)pt" height="([\d.]+)pt"', re.DOTALL)
PIXELS_PER_POINT = 4 / 3
REFERENCE = re.compile(r"url\(#([^)]+)\)")
MOVE = re.compile(r"translate\([^)]*\)")
LONG_NUMBER = re.compile(r"(\.\d\d)\d+")


class Size(NamedTuple):
    """Width and height in pixels of the page."""

    width: int
    height: int


def size(svg: str) -> Size | None:
    """How large the picture is drawn where there is room; None if the file does not say it in points."""
    match = SIZE.search(svg)
    return Size(*(round(float(points) * PIXELS_PER_POINT) for points in match.groups())) if match else None


def shrink(folder: Path) -> None:
    """Make matplotlib's SVG files in `folder` smaller, except those that already are."""
    for file in folder.glob("*.svg"):
        text = file.read_text()
        if MARK_OF_A_LARGE_FILE in text:
            file.write_text(smaller(text))


def smaller(svg: str) -> str:
    """The same picture in little more than half of the text; its label and title stay.

    Names that nothing refers to, and groups that say nothing, go; other names become short; a style that several
    elements have is written once; places are given to a hundredth of a point, those of a path from the point before.
    """
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in parent.findall(METADATA):
            parent.remove(child)
    _shorten_names(root)
    _share_styles(root)
    for element in root.iter():
        if transform := element.get("transform"):
            element.set("transform", MOVE.sub(lambda move: LONG_NUMBER.sub(r"\1", move[0]), transform))
        if "d" in element.attrib:
            element.set("d", paths.relative(element.attrib["d"]))
    _remove_empty_groups(root)
    return ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")


def _shorten_names(root: ElementTree.Element) -> None:
    """Give what is referred to a short id, and take the ids of all else away."""
    values = [value for element in root.iter() for value in element.attrib.values()]
    targets = {element.get(LINK, "").removeprefix("#") for element in root.iter()}
    targets |= {name for value in values for name in REFERENCE.findall(value)}
    names: dict[str, str] = {}
    for element in root.iter():
        name = element.attrib.pop("id", None)
        if name in targets and name is not None:
            element.set("id", names.setdefault(name, f"i{len(names)}"))
    for element in root.iter():
        link = element.attrib.pop(LINK, None)
        if link is not None:  # a picture within the picture is its own address
            element.set("href", f"#{names.get(link[1:], link[1:])}" if link[:1] == "#" else link)
        for attribute, value in element.attrib.items():
            element.set(attribute, REFERENCE.sub(lambda match: f"url(#{names.get(match[1], match[1])})", value))


def _share_styles(root: ElementTree.Element) -> None:
    """Write each style that several elements have once, as a class."""
    sheet = root.find(f".//{STYLE}")
    if sheet is None:
        return
    counts = Counter(style for element in root.iter() if (style := element.get("style")))
    classes = {style: f"c{number}" for number, (style, count) in enumerate(counts.most_common()) if count > 2}
    for element in root.iter():
        if element.get("style") in classes:
            element.set("class", classes[element.attrib.pop("style")])
    sheet.text = (sheet.text or "") + "".join(f".{name}{{{style}}}" for style, name in classes.items())


def _remove_empty_groups(parent: ElementTree.Element) -> None:
    """Put what is in a group without attributes in its place."""
    children = []
    for child in list(parent):
        _remove_empty_groups(child)
        children += list(child) if child.tag == GROUP and not child.attrib else [child]
    parent[:] = children
