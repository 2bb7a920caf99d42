"""What a fuzzer draws: files that may be notebooks, folders as students hand them in, cells, messages on the wire."""

# ruff: noqa: E501  # one line for each case of a table

import json
import os
from pathlib import Path

from hypothesis import strategies as st

from tests.course_tools.grading.submitted import LAB

MOST_STUDENTS = 5
# Texts as a file, a shell, a spreadsheet, a terminal or a browser would not like them.
NASTY = ["", "\x00", "\ud800", "=1+1", "a;=1+1", "\x1b[2J", "<script>", "{{ 7 * 7 }}", "a\nb", "\u202e", "x" * 300, "../x"]  # fmt: skip
texts = st.one_of(st.sampled_from(NASTY), st.text(st.characters(), max_size=20))


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


_NAMES = st.one_of(
    st.sampled_from(
        [b"ada", b"=bob", b"a;=1+1", b"\xe9mile", b"\x1b[2J", b"_x", b".x", b"a\nb", b"-", b"x" * 255, b"students.txt"]
    ),
    st.binary(min_size=1, max_size=12).map(lambda name: name.replace(b"/", b"_").replace(b"\x00", b"0")),
).filter(lambda name: name not in (b".", b".."))
_ENTRIES = st.one_of(
    st.sampled_from([LAB.encode(), b"90", b"90 x", b"90-\xe9", b"lab.ipynb", b"timestamp.txt", b"x.ipynb", b"=1.zip"]),
    _NAMES,
)
_TIMES = st.one_of(st.integers(-(2**33), 2**33), st.just(10**12), st.just(2**55))


@st.composite
def submissions(draw: st.DrawFn) -> list[tuple[bytes, ...]]:
    """Orders for `hand_in`: pairs of a kind and a path, with what the kind needs."""
    entries = []
    for student in draw(st.lists(_NAMES, min_size=1, max_size=MOST_STUDENTS, unique=True)):
        entries.append((b"folder", student))
        for entry in draw(st.lists(_ENTRIES, max_size=3, unique=True)):
            path = student + b"/" + entry
            kind = draw(st.sampled_from([b"folder", b"folder", b"file", b"link", b"pipe"]))
            entries.append((kind, path, draw(st.binary(max_size=30))))
            for file in draw(st.lists(_ENTRIES, max_size=3, unique=True)) if kind == b"folder" else []:
                kind = draw(st.sampled_from([b"file", b"file", b"link", b"pipe", b"folder"]))
                content = draw(st.one_of(st.binary(max_size=30), st.just(b"2026-01-01 12:00")))
                entries.append((kind, path + b"/" + file, content, str(draw(_TIMES)).encode()))
    if draw(st.booleans()):
        entries.append((b"file", b"students.txt", b"\n".join(draw(st.lists(_NAMES, max_size=3)))))
    if draw(st.booleans()):
        entries.append((b"link", draw(_NAMES), b"ada"))
    return entries


def hand_in(folder: Path, entries: list[tuple[bytes, ...]]) -> None:
    """Make what `submissions` says below a folder; what cannot be made is left out."""
    for kind, name, *more in [(b"folder", b"zoe"), (b"folder", f"zoe/{LAB}".encode()), *entries]:
        path = folder / os.fsdecode(name)
        try:
            match kind:
                case b"folder":
                    path.mkdir(parents=True, exist_ok=True)
                case b"file":
                    path.write_bytes(more[0])
                case b"link":
                    path.symlink_to(os.fsdecode(more[0].replace(b"\x00", b"") or b"/etc"))
                case b"pipe":
                    os.mkfifo(path)
            if len(more) > 1:
                os.utime(path, (0, int(more[1])), follow_symlinks=False)
        except (OSError, OverflowError, ValueError):
            continue
    (folder / "zoe" / LAB / "lab.ipynb").write_text("{}")


_LEAVES = (
    r"""
None  True  6  6.0  -1  7  1e400  -0.0  5j  10**400  '6'  b'6'  '\ud800'  ...  NotImplemented  float('nan')
np.nan  np.int8(6)  np.float16(6)  np.bool_(1)  np.array(6)  np.array([6])  np.zeros(0)  np.zeros((2,0))
np.array('6')  np.array(None)  np.array(['\ud800'])  np.array([1,2],'>i4')  np.zeros(3,'f8,i4')
np.datetime64('2020')  np.ones(9)[::-2]  np.broadcast_to(6,(9,9))  np.ma.array([6],mask=[1])  object()  int
type(6)  len  np  range(6)  {6}  frozenset()  memoryview(b'6')  bytearray(b'6')  iter([6])  lambda:6
slice(6)  __import__('fractions').Fraction(6)  __import__('decimal').Decimal(6)
__import__('collections').Counter('6')  Six(6)  Like()  Is()  Deep()
""".strip()
    .replace("\n", "  ")
    .split("  ")
)
values = st.recursive(
    st.sampled_from(_LEAVES),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(inner, max_size=3).map(lambda items: f"tuple([{', '.join(items)}])"),
        st.tuples(st.sampled_from(["6", "'x'", "None", "6.0", "(1, 2)", "np.int8(1)", "'\\ud800'"]), inner).map(
            "{{{0[0]}: {0[1]}}}".format
        ),
        inner.map("np.array([{}], object)".format),
    ),
    max_leaves=6,
)
"""Python expressions of what a student's namespace can hold; their names are in CLASSES."""
CLASSES = """
class Six(int):
    __eq__ = lambda self, other: True
    __hash__ = int.__hash__
    __index__ = __int__ = lambda self: 6
class Like:
    __eq__ = lambda self, other: True
    __array__ = lambda self, *more: np.array(6)
    numpy = lambda self: self
class Is:
    __class__ = int
    numpy = lambda self: np.int64(5)
class Deep(dict):
    items = lambda self: [(1, self)]
    __len__ = lambda self: 10**9
"""
STATEMENTS = [
    "raise KeyboardInterrupt",
    "raise type('\\ud800', (BaseException,), {'__str__': lambda self: 1 / 0})()",
    "import sys; sys.setrecursionlimit(60)",
    "import sys; sys.modules.clear()",
    "import sys; sys.stdout = sys.stderr = None",
    "import builtins; builtins.isinstance = lambda *anything: True",
    "import builtins; builtins.__dict__.clear()",
    "import os; os.closerange(0, 50)",
    "import os; os._exit(0)",
    "import os; os.fork()",
    "import os; os.chdir('/tmp'); import shutil; shutil.rmtree('/lab', ignore_errors=True)",
    "import gc; gc.set_threshold(1)",
    "import signal; signal.alarm(1)",
    "import threading; threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()",
    "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**20, 2**20))",
    "globals().clear()",
    "np = None",
    "print('\\ud800' * 100_000)",
    "__name__ = steps = mean = print",
    "def deeper(): return deeper()\ndeeper()",
]


_NUMBERS = st.integers(-(2**70), 2**70) | st.floats()
_SIGNS = st.sampled_from(["<f8", "|b1", "<U3", "|O8", "<U9999999", "AAAAAAAAAAA=", "\ud800"]) | st.text(max_size=8)
_ARRAYS = st.tuples(_SIGNS, st.lists(st.integers(-1, 2), max_size=2), _SIGNS).map(lambda parts: {"a": parts})
_parts = json_of(st.none() | st.booleans() | _NUMBERS | _SIGNS | _ARRAYS, st.sampled_from("ttddccbbaax"))
messages = st.binary(max_size=40) | damaged(_parts).map(lambda content: len(content).to_bytes(8, "big") + content)
"""Bytes that a student's process may send."""
