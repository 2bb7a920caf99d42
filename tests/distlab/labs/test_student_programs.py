"""The functions of a notebook as the text of a program."""

import linecache
import math

from distlab.labs.student_programs import text_of

NOTEBOOK = """
def root(number):
    return math.sqrt(number)


def start(numbers):
    return [root(number) for number in numbers]
"""


def test_a_function_comes_after_what_it_uses_also_in_a_comprehension() -> None:
    namespace: dict = {"math": math}
    linecache.cache["<cell>"] = (len(NOTEBOOK), None, NOTEBOOK.splitlines(keepends=True), "<cell>")
    exec(compile(NOTEBOOK, "<cell>", "exec"), namespace)
    text = text_of(namespace, ["start"])
    copied: dict = {}
    exec(text, copied)
    assert copied["start"]([4, 9]) == [2, 3]
    assert text.index("import math") < text.index("def root") < text.index("def start")
