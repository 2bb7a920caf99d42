"""Golden records: what must not change while the code is rebuilt.

    python -m tests.golden.record [PART ...]            write the records beside this file, by default of all parts
    python -m tests.golden.record --check [PART ...]    compare with them; print what differs, and end with status 1

    labs     the verdict on every right, known-wrong and untouched answer: labs/NN.json (--only 03,06 takes some labs)
    grades   what `distlab grade` gives a class of ten: grades/
    predict  the tables of `distlab predict`: predict/
    figures  digests of the pictures, committed and drawn again: figures.json
    outputs  what the cells of the committed notebooks gave, without those that vary: outputs/
    quizzes  digests of what each template asks and explains for 20 seeds, and of a sheet and a page: quizzes.json

No record has a time, a path or a name of the machine that wrote it, and each part gives the same records again. Only
`labs` imports the course; the other parts use what anybody sees: commands, files, pages. Words of Python itself in
hints are those of Python 3.11. `knowledge.md` and the class in `class/` are written by hand.
"""

import argparse
import contextlib
import csv
import difflib
import hashlib
import html
import importlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.golden import moved

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]
LABS = ROOT / "labs"
SEEDS = (0, 12345, 7)
"""Of the check, and two that are as secret as those of grading."""
MOST_DIFFERENCES = 40  # lines for one record
Records = Iterator[tuple[str, str]]
"""Names of files, beside this one, with their contents."""

# What surrounds a command must not show in what it prints.
ENVIRONMENT = {"COLUMNS": "100", "PYTHONHASHSEED": "0", "MPLBACKEND": "Agg", "PYTHON_COLORS": "0", "TZ": "UTC"}
SECONDS = 3600


def distlab(*arguments: str, folder: Path = ROOT, statuses: Iterable[int] = (0,)) -> str:
    """What a command of the course prints."""
    command = [sys.executable, "-m", "course_tools", *arguments]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert run.returncode in statuses, (arguments, run.returncode, run.stdout, run.stderr)
    return run.stdout


def lines(items: Mapping[str, Any]) -> str:
    """JSON with sorted keys, one item a line."""
    rows = (
        f" {json.dumps(key)}: {json.dumps(items[key], ensure_ascii=False, sort_keys=True)}" for key in sorted(items)
    )
    return "{\n" + ",\n".join(rows) + "\n}"


# Labs ----------------------------------------------------------------------------------------------------------------

MODULES = {
    number: [f"lab_{number}_tests.answers_{number}"]
    for number in (path.name[:2] for path in sorted(LABS.glob("[0-9][0-9]_*")))
    if number != "02"  # all its exercises are others than those before the judges moved
}
"""The modules with the answers to each lab."""
for apart in ("03.answers_03_mirrored", "05.answers_05_run", "05.test_lab"):
    MODULES[apart[:2]].append(f"lab_{apart[:2]}_tests{apart[2:]}")
for apart in ("09.answers_09_horovod", "16.answers_16_training"):
    MODULES[apart[:2]].append(f"lab_{apart[:2]}_tests{apart[2:]}")

MOVES = re.compile(r"\btmp\w{8}\b|(?<=in line )\d+(?= of its cell)|\b0x[0-9a-f]{6,}\b")
"""Names of temporary folders, lines of the files with the answers, addresses."""
MEASURED = {
    "16": re.compile(r"(`seconds` of step \d+ is|no more than|alone took|`loss` is|mean over its texts) \d[\d.]*\d"),
}
"""By lab: numbers in hints that a clock has shown, or that come from weights without a seed."""


def labs(only: list[str]) -> Records:
    """By exercise and title of the answer: for each seed the state, the share of the points and the text.

    Each module of answers is judged in a process of its own, from its beginning.
    """
    for number in only or MODULES:
        if moved.is_moved(number):  # its record stays; --check compares it in its own way
            continue
        verdicts: dict[str, dict[str, list]] = {}
        for module in MODULES[number]:
            with ProcessPoolExecutor(1, get_context("spawn")) as process:
                for exercise, title, judged in process.submit(judge, number, module).result():
                    titles = verdicts.setdefault(exercise, {})
                    alike = sum(name.split(" #")[0] == title for name in titles)
                    titles[f"{title} #{alike + 1}" if alike else title] = judged
        exercises = (f"{json.dumps(name)}: {lines(verdicts[name])}" for name in sorted(verdicts))
        yield f"labs/{number}.json", "{\n" + ",\n".join(exercises) + "\n}\n"


def judge(number: str, module: str, lab: Any = None) -> list[tuple[str, str, list]]:
    """Exercise, title and verdicts of every answer in a module; `lab` is the registry's if none is passed."""
    from distlab.labs import registry
    from tests.distlab.labs.known_wrong import verdict_on

    lab = lab or registry.lab(number)
    with contextlib.redirect_stdout(io.StringIO()):  # what answers print
        return [
            (exercise, title, [said(number, exercise, verdict_on(lab, exercise, names, seed)) for seed in SEEDS])
            for exercise, title, names in answers(importlib.import_module(module))
            if exercise in {each.name for each in lab}
        ]


def said(number: str, exercise: str, verdict: Any) -> tuple[str, float, str]:
    """State, share and text, without what varies."""
    text = MOVES.sub("…", verdict.text.replace(str(ROOT), "…"))
    if number in MEASURED:
        text = MEASURED[number].sub(r"\1 …", text)
    return str(verdict.state), round(verdict.share, 9), text


def answers(known: Any) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Exercise, title, and the names that the answer defines."""
    if not hasattr(known, "ANSWERS"):
        yield from answers_in_cells(known)
        return
    solutions = getattr(known, "SOLUTIONS", None)  # only where answers start TensorFlow
    given = getattr(known, "GIVEN", {})
    if solutions is None:
        yield from known.ANSWERS.all_right()
        untouched = known.ANSWERS.untouched
    else:
        for exercise, names in solutions.items():
            for title, right in [("solution", names), *known.ANSWERS.right_answers[exercise]]:
                yield exercise, title, given | right
        untouched = dict.fromkeys(solutions, lambda *arguments: None)
    for exercise, answer in known.ANSWERS.all_wrong():
        yield exercise, answer.title, given | answer.namespace
    for exercise, value in untouched.items():
        yield exercise, "untouched", given | {exercise: value}
        yield exercise, "missing", given


def answers_in_cells(known: Any) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Lab 05's answers that need the text of their cell, and its rules that hold for many runs only."""
    from course_tools.sandbox.cells import Cells

    for title, order in (known.LOST_AT_RESTART | known.SAME_AFTER_RESTART).items():
        cells = Cells(10_000)
        cells.run(known.ORDER_IN_ITS_CELL.format(order=order), "numbers_of")
        yield "numbers_of", title, cells.namespace
    for title, rules in known.RULES_FOR_MANY_RUNS.items():
        yield "lacks", title, {"lacks": known.lacks_by(*rules)}


# Grades --------------------------------------------------------------------------------------------------------------

CLASS, SEED = HERE / "class" / "submissions.toml", "39"


def hand_in(folder: Path, notebook: Mapping[str, Any], saved: datetime) -> None:
    """Write what a student hands in, as `CLASS` describes it."""
    place = folder / notebook["student"] / notebook["topic"]
    place.mkdir(parents=True, exist_ok=True)
    original = "lab.ipynb" if notebook.get("lab") else "solution.ipynb"
    content = json.loads((LABS / notebook["topic"] / original).read_text())
    cells = {cell["metadata"].get("nbgrader", {}).get("grade_id"): cell for cell in content["cells"]}
    for exercise, (before, after) in notebook.get("change", {}).items():
        text = "".join(cells[exercise]["source"])
        assert before in text, (exercise, before)
        cells[exercise]["source"] = text.replace(before, after)
    files = {
        notebook.get("name", "lab.ipynb"): json.dumps(content)[: notebook.get("cut")],
        **notebook.get("beside", {}),
    }
    for name, text in files.items():
        (place / name).write_text(text)
        os.utime(place / name, 2 * (notebook.get("saved", saved).timestamp(),))


ROW = re.compile(
    r'<tr><td>(\w+)</td><td>([^<]*)</td>\s*<td class="number">([\d.]+)</td><td class="number">([\d.]+)</td>'
)


def grades(only: list[str]) -> Records:
    """The table, what the instructor has to look at, and what each student's page says of each exercise."""
    with tempfile.TemporaryDirectory() as temporary:
        course = Path(temporary)
        (course / "labs").symlink_to(LABS)
        described = tomllib.loads(CLASS.read_text())
        for notebook in described["notebook"]:
            hand_in(course / "in", notebook, described["saved"])
        students = sorted(notebook["student"] for notebook in described["notebook"])
        (course / "in" / "students.txt").write_text("".join(f"{name}\n" for name in dict.fromkeys(students)))
        choices = ("--only", "06,10", "--due", described["due"], "--late-share", "0.5", "--seed", SEED, "--weak")
        distlab("grade", "in", *choices, folder=course, statuses=(0, 1))
        results = course / "build" / "grades"
        yield "grades/grades.csv", (results / "grades.csv").read_text()
        with (results / "grades.csv").open(newline="") as stream:
            rows = [(row["student"], row["lab"]) for row in csv.DictReader(stream)]
        states = {}
        for student, lab in rows:
            page = (results / "feedback" / student / f"{lab}.html").read_text()
            states[f"{student} {lab}"] = [
                f"{exercise}: {html.unescape(state)}, {points} of {most}"
                for exercise, state, points, most in ROW.findall(page)
            ]
        yield "grades/states.json", f"{lines(states)}\n"
        look_at = json.loads((results / "report.json").read_text())["look_at"]
        yield "grades/look_at.txt", "".join(f"{line}\n" for line in look_at)


# Predictions, pictures, commands, notebooks --------------------------------------------------------------------------

MEASUREMENTS = {"two.json": "measured_2_hosts_1gbit.json", "three.json": "measured_3_hosts_1gbit.json"}
PREDICTIONS = {
    "images": "--model resnet50 --ranks 1..1024",
    "transformer": "--model gpt-175b --tensor 8 --pipeline 12 --ranks 384",
    "transformer_zero": "--model gpt-175b --tensor 4 --pipeline 4 --zero 1 --sequences 1024 --ranks 256,512",
    "measured": "--measured two.json",
    "measured_compared": "--measured two.json --compare three.json",
    "published": "--published",
}


def predict(only: list[str]) -> Records:
    """The examples of the README, the handbook and chapter 12, and what is published."""
    with tempfile.TemporaryDirectory() as temporary:
        for name, file in MEASUREMENTS.items():
            shutil.copy(ROOT / "notebooks/programs/15_clusters/recorded" / file, Path(temporary) / name)
        for name, options in PREDICTIONS.items():
            printed = distlab("predict", *options.split(), folder=Path(temporary))
            yield f"predict/{name}.txt", f"$ distlab predict {options}\n{printed}"


def figures(only: list[str]) -> Records:
    """SHA-256 of each picture, as committed and as the scripts draw it now."""
    with tempfile.TemporaryDirectory() as temporary:
        for script in sorted((ROOT / "figures" / "src").glob("[0-9][0-9]_*.py")):
            subprocess.run([sys.executable, script, temporary], cwd=ROOT, timeout=SECONDS, check=True)
        digests = {}
        for state, folder in (("committed", ROOT / "figures"), ("drawn again", Path(temporary))):
            for file in folder.glob("*.svg"):
                digests.setdefault(file.name, {})[state] = hashlib.sha256(file.read_bytes()).hexdigest()
    yield "figures.json", f"{lines(digests)}\n"


def outputs(only: list[str]) -> Records:
    """What is printed and shown as text; a line of dashes between two cells."""
    for file in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        cells = []
        for cell in json.loads(file.read_text())["cells"]:
            if cell["cell_type"] != "code" or "varies" in cell["metadata"].get("tags", []):
                continue
            texts = [text for output in cell["outputs"] for text in texts_of(output)]
            cells += ["\n".join(texts)] if texts else []
        # How large a difference below the tolerance is depends on the processor.
        text = re.sub(r"(largest difference of the \w+): \S+", r"\1: …", f"\n{'-' * 40}\n".join(cells))
        yield f"outputs/{file.stem}.txt", f"{text}\n"


def texts_of(output: Mapping[str, Any]) -> Iterator[str]:
    """Streams, Markdown and plain text of an output in a notebook."""
    data = output.get("data", {})
    for text in (output.get("text"), data.get("text/markdown"), data.get("text/plain")):
        if text is not None:
            yield "".join(text).rstrip("\n")


# Quizzes -------------------------------------------------------------------------------------------------------------

ALL_QUESTIONS = ("quiz", "all", "--count", "160", "--answers")


def quizzes(only: list[str]) -> Records:
    """SHA-256 of a template's 20 questions with choices, answers and explanations, and of each form of a quiz.

    Values and tolerance count only where a number is entered.
    """
    asked: dict[str, list[Any]] = {}
    for seed in range(1, 21):
        printed = json.loads(distlab(*ALL_QUESTIONS, "--seed", str(seed), "--form", "json"))
        for question in printed["questions"]:
            if question["kind"] == "number":
                for answer in question["answers"]:
                    answer["value"] = f"{answer['value']:.9g}"
            else:
                del question["tolerance"]
                for answer in question["answers"]:
                    del answer["value"]
            asked.setdefault(f"{question['chapter']} {question['name']}", []).append(question)
    digests = {name: digest(json.dumps(questions, sort_keys=True)) for name, questions in asked.items()}
    digests["order"] = digest("\n".join(asked))
    for form in ("markdown", "html"):
        printed = re.sub(r' data-value="[^"]*"', "", distlab(*ALL_QUESTIONS, "--seed", "21", "--form", form))
        digests[form] = digest(printed)
    digests["html without answers"] = digest(distlab(*ALL_QUESTIONS[:-1], "--seed", "21", "--form", "html"))
    yield "quizzes.json", f"{lines(digests)}\n"


def digest(text: str) -> str:
    """SHA-256, in 64 letters."""
    return hashlib.sha256(text.encode()).hexdigest()


# The command ---------------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[list[str]], Records]] = {
    "labs": labs,
    "grades": grades,
    "predict": predict,
    "figures": figures,
    "outputs": outputs,
    "quizzes": quizzes,
}


def differences(name: str, text: str) -> list[str]:
    """What is no longer as recorded, at most so many lines."""
    file = HERE / name
    before = file.read_text() if file.exists() else ""
    if before == text:
        return []
    changes = list(
        difflib.unified_diff(
            before.splitlines(), text.splitlines(), f"{name} recorded", f"{name} now", n=0, lineterm=""
        )
    )
    more = len(changes) - MOST_DIFFERENCES
    return changes[:MOST_DIFFERENCES] + ([f"… and {more} lines more"] if more > 0 else [])


def main() -> int:
    """Write or compare; 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden.record", description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; by default all")
    parser.add_argument("--check", action="store_true", help="compare with the records instead of writing them")
    parser.add_argument("--only", default="", help="labs: some of them, such as 03,06")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    os.environ.update(ENVIRONMENT)
    found = []
    only = [number for number in options.only.split(",") if number]
    for part in options.parts or PARTS:
        gone = {f"{part}/{file.name}" for file in (HERE / part).glob("*")} if options.check and not only else set()
        for name, text in PARTS[part](only):
            gone.discard(name)
            if options.check:
                found += differences(name, text)
            else:
                (HERE / name).parent.mkdir(exist_ok=True)
                (HERE / name).write_text(text)
            print(f"{'compared' if options.check else 'wrote'} {name}", file=sys.stderr, flush=True)
        for number in (only or MODULES) if part == "labs" and options.check else ():
            if moved.is_moved(number):
                gone.discard(f"labs/{number}.json")
                *lines_of_lab, counts = moved.compared(number, MODULES[number])
                found += lines_of_lab
                print(f"compared {counts}", file=sys.stderr, flush=True)
        found += [f"{name} recorded, and not made any more" for name in sorted(gone)]
    print("\n".join(found) if found else "no difference" if options.check else "done")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
