"""A function that is defined again, as a new process would, has no memory of its calls; all else is as before."""

import os
import random

import numpy as np
import pytest
from lab_05.new_process import CannotRunAgain, defined_again

from course_tools.sandbox.cells import Cells


def run(*texts: str) -> dict:
    cells = Cells(10_000)
    for number, text in enumerate(texts):
        assert cells.run(text, f"of test {number}")["error"] is None
    return cells.namespace


def test_what_the_cell_computes_is_computed_again() -> None:
    namespace = run("calls = []\ndef f():\n    calls.append(1)\n    return len(calls)")
    assert [namespace["f"](), namespace["f"]()] == [1, 2]
    with defined_again(namespace, "f") as function:
        assert function() == 1
    assert namespace["f"]() == 3


def test_cells_of_functions_that_it_calls_run_again_and_others_do_not() -> None:
    of_helper = "import functools\nkept = []\n@functools.cache\ndef helper():\n    kept.append(1)\n    return len(kept)"
    namespace = run("data = []", of_helper, "def f():\n    data.append(1)\n    return helper(), len(data)")
    assert namespace["f"]() == (1, 1)
    namespace["kept"].append(1)
    with defined_again(namespace, "f") as function:
        assert function() == (1, 2)


def test_statements_that_use_the_lab_are_left_out() -> None:
    text = "def f():\n    return 1\nchecks.append(lab)"
    namespace = run("lab, checks = 5, []", text)
    with defined_again(namespace, "f") as function:
        assert function() == 1
    assert namespace["checks"] == [5]


def test_random_numbers_go_on_as_if_nothing_had_been_asked() -> None:
    namespace = run("import random\nimport numpy as np\ndef f():\n    return random.random(), np.random.random()")
    random.seed(1)
    np.random.seed(1)
    expected = namespace["f"]()
    random.seed(1)
    np.random.seed(1)
    with defined_again(namespace, "f") as function:
        assert function() != expected
    assert namespace["f"]() == expected


def test_hashes_of_texts_are_others_and_of_numbers_the_same() -> None:
    namespace = run("def f(value):\n    return hash(value)")
    with defined_again(namespace, "f") as function:
        assert function("a") != hash("a") and function((1, "a")) != hash((1, "a"))
        assert function("a") == function("a")
        assert function(5) == hash(5) and function((1, 2)) == hash((1, 2))


def test_a_cell_that_fails_or_is_not_known_is_said() -> None:
    namespace = run("first = [1]", "value = first.pop()\ndef f():\n    return value")
    with pytest.raises(CannotRunAgain, match="IndexError"), defined_again(namespace, "f"):
        pass
    with pytest.raises(CannotRunAgain, match="not a function"), defined_again({"f": run}, "f"):
        pass


@pytest.mark.parametrize("imported", ["import os", "from os import getpid"])
def test_the_number_of_the_process_is_another_one(imported: str) -> None:
    name = "os.getpid" if imported == "import os" else "getpid"
    namespace = run(imported, f"def f():\n    return {name}()")
    with defined_again(namespace, "f") as function:
        numbers = {function(), function()}
    assert len(numbers) == 1
    assert numbers != {os.getpid()} == {namespace["f"]()}
