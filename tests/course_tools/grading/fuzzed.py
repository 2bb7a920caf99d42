"""What a fuzzer draws: files that may be notebooks, folders as students hand them in, messages on the wire."""

import json
import os
from pathlib import Path

from hypothesis import strategies as st

from tests.course_tools.grading.submitted import LAB

MOST_STUDENTS = 5
# Texts as a file, a shell, a spreadsheet, a terminal or a browser would not like them.
NASTY = ["", "\x00", "\ud800", "=1+1", "a;=1+1", "\x1b[2J", "<script>", "{{ 7 * 7 }}", "a\nb", "\u202e", "x" * 300]
texts = st.sampled_from([*NASTY, "../x"]) | st.text(st.characters(), max_size=20)


def json_of(leaves: st.SearchStrategy, keys: st.SearchStrategy[str]) -> st.SearchStrategy:
    """What JSON has: these values, and lists and objects of them."""
    lists = lambda inner: st.lists(inner, max_size=4)  # noqa: E731
    return st.recursive(leaves, lambda inner: lists(inner) | st.dictionaries(keys, inner, max_size=4), max_leaves=12)


anything = json_of(st.none() | st.booleans() | st.integers() | st.floats() | texts, texts)
grade_ids = st.sampled_from(["mean", "steps", "all_gather", "check_mean", "check_", "no such"]) | anything
SOURCES = ["steps = 6", "lab.check('steps')", "import numpy as np", "%time", "def f(:", "!ls\n?x", "a" + ".b" * 400]
settings = st.fixed_dictionaries({"grade_id": grade_ids, "solution": st.booleans() | anything}) | anything
cell_parts = {
    "cell_type": st.sampled_from(["code", "markdown", "raw"]) | anything,
    "source": st.sampled_from(SOURCES) | st.lists(texts, max_size=3) | anything,
    "metadata": st.fixed_dictionaries({"nbgrader": settings}) | anything,
}
cells = st.lists(st.fixed_dictionaries(cell_parts) | anything, max_size=8)
notebooks = st.fixed_dictionaries({"cells": cells | anything}) | anything


@st.composite
def damaged(draw: st.DrawFn, values: st.SearchStrategy) -> bytes:
    """JSON of one of the values, cut off or damaged in places, or anything."""
    content = json.dumps(draw(values)).encode()
    place = draw(st.integers(0, len(content)))
    others = [content[:place], content[:place] + draw(st.binary(max_size=4)) + content[place:], draw(st.binary())]
    return draw(st.sampled_from([content, content, *others, b"[" * 100_000]))


NAMES = [b"ada", b"=bob", b"a;=1+1", b"\xe9mile", b"\x1b[2J", b"_x", b".x", b"a\nb", b"-", b"x" * 255, b"students.txt"]
PARTS = [LAB.encode(), LAB.encode(), b"90", b"90 x", b"90-\xe9", b"lab.ipynb", b"timestamp.txt", b"x.ipynb", b"=1.zip"]
names = st.sampled_from(NAMES) | st.binary(min_size=1, max_size=12).map(lambda name: name.translate(None, b"/\x00."))
parts = st.sampled_from(PARTS) | names
entries = st.tuples(
    st.sampled_from(["folder", "file", "file", "link", "pipe"]),
    st.tuples(names, parts, parts) | st.tuples(names, parts) | st.tuples(names),
    st.binary(max_size=30) | st.just(b"2026-01-01 12:00"),
    st.integers(-(2**33), 2**33) | st.sampled_from([10**12, 2**55]),
)
submissions = st.lists(entries, min_size=1, max_size=3 * MOST_STUDENTS)
"""Orders for `hand_in`: a kind, the parts of a path, a content, and a time in seconds."""


def hand_in(folder: Path, entries: list[tuple[str, tuple[bytes, ...], bytes, int]]) -> None:
    """Make what `submissions` says below a folder; what cannot be made is left out."""
    for kind, path, content, time in [("file", (b"zoe", LAB.encode(), b"lab.ipynb"), b"{}", 0), *entries]:
        place = folder / os.fsdecode(b"/".join(path))
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            match kind:
                case "folder":
                    place.mkdir()
                case "file":
                    with place.open("xb") as stream:  # a pipe that is there already would wait for a reader
                        stream.write(content)
                case "link":
                    place.symlink_to(os.fsdecode(content.replace(b"\x00", b"") or b"/etc"))
                case "pipe":
                    os.mkfifo(place)
            os.utime(place, (0, time), follow_symlinks=False)
        except (OSError, OverflowError, ValueError):
            continue


_NUMBERS = st.integers(-(2**70), 2**70) | st.floats()
_SIGNS = st.sampled_from(["<f8", "|b1", "<U3", "|O8", "<U9999999", "AAAAAAAAAAA=", "\ud800"]) | st.text(max_size=8)
_ARRAYS = st.tuples(_SIGNS, st.lists(st.integers(-1, 2), max_size=2), _SIGNS).map(lambda parts: {"a": parts})
_plain = json_of(st.none() | st.booleans() | _NUMBERS | _SIGNS | _ARRAYS, st.sampled_from("ttddccbbaax"))
messages = st.binary(max_size=40) | damaged(_plain).map(lambda content: len(content).to_bytes(4, "big") + content)
"""Bytes that a student's process may send."""
