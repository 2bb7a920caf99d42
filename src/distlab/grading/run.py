"""Grading everything that was handed in, side by side."""

import json
import queue
import resource
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from distlab.grading import feedback, grades, notebook
from distlab.grading.grade import Graded, Report, grade
from distlab.grading.grades import Grade
from distlab.grading.material import Material
from distlab.grading.submissions import Submission
from distlab.labs.verdict import NOT_DONE, Verdict
from distlab.sandbox import SandboxedWork, Server
from distlab.sandbox.protections import Protections


@dataclass(frozen=True)
class Plan:
    """What to grade, with what, where to; points of late work count `late_share`; `weak` does without namespaces."""

    submissions: Sequence[Submission]
    materials: Mapping[str, Material]
    folder: Path
    seed: int
    protections: Protections
    late_share: float = 1.0
    at_once: int = 2
    weak: bool = False


@dataclass
class Result:
    """All grades in order, with what the instructor has to look at, and the seconds that it took."""

    grades: list[Grade] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Servers:
    """The processes that sandboxes come from: one with TensorFlow and one without, started when first needed."""

    def __init__(self, materials: Mapping[str, Material], weak: bool) -> None:
        """For these labs."""
        self._materials, self._weak = materials, weak
        self._lock = threading.Lock()
        self._started: dict[bool, Server] = {}
        self._stack = ExitStack()

    def __enter__(self) -> "Servers":
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def of(self, material: Material) -> Server:
        """The server for a lab."""
        kind = material.lab.tensorflow
        with self._lock:
            if kind not in self._started:
                alike = [other.modules for other in self._materials.values() if other.lab.tensorflow == kind]
                self._started[kind] = self._stack.enter_context(Server(sorted(set().union(*alike)), self._weak))
            return self._started[kind]


def run(plan: Plan, say: Callable[[str], None] = print) -> Result:
    """Grade, write grades.csv, the feedback and report.json into the plan's folder, which is emptied before.

    Nothing that fails stops the rest. When this returns, or is interrupted, no student's process is left.
    """
    began = time.monotonic()
    shutil.rmtree(plan.folder, ignore_errors=True)  # of an earlier run, perhaps of another class
    waiting: queue.Queue[int] = queue.Queue()
    for number in range(len(plan.submissions)):
        waiting.put(number)
    done: dict[int, tuple[Grade, list[str]]] = {}

    def work(servers: Servers) -> None:
        while True:
            try:
                number = waiting.get_nowait()
            except queue.Empty:
                return
            done[number] = _grade_one(plan.submissions[number], plan, servers)
            row = done[number][0]
            say(f"{row.student}  {row.lab}: {row.score:g} of {row.max_score:g}{'  ' + row.note if row.note else ''}")

    with Servers(plan.materials, plan.weak) as servers:
        threads = [threading.Thread(target=work, args=[servers], daemon=True) for _ in range(plan.at_once)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    result = Result(
        [done[number][0] for number in sorted(done)], [line for number in sorted(done) for line in done[number][1]]
    )
    result.seconds = time.monotonic() - began
    grades.write(result.grades, plan.folder / "grades.csv")
    _write_report(result, plan)
    return result


def limit_own_memory() -> None:
    """Let this process have half of the machine's memory beyond what it has reserved.

    A student's array that is small, but grows when a judge compares it with another, then ends in a MemoryError.
    """
    reserved = psutil.Process().memory_info().vms
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = reserved + psutil.virtual_memory().total // 2
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _grade_one(submission: Submission, plan: Plan, servers: Servers) -> tuple[Grade, list[str]]:
    """The grade of a submission, its page written, and what the instructor has to look at."""
    material = plan.materials[submission.lab]
    notes, problems = list(submission.notes), []
    report = _nothing(material)
    if submission.file is not None:
        try:
            cells = notebook.read(submission.file)
            fitted = notebook.fit(cells, material.steps, material.stubs)
            with SandboxedWork(servers.of(material), material.limits, material.files) as sandboxed:
                report = grade(material.lab, fitted, sandboxed, plan.seed)
        except notebook.Unreadable as error:
            notes.append(f"unreadable: {error}")
        except Exception as error:  # ours or the machine's fault; it must not stop the others
            notes.append("NOT GRADED, see the report")
            problems.append(f"{submission.student} {submission.lab}: {type(error).__name__}: {error}")
    notes += report.remarks
    problems += [f"{submission.student} {submission.lab} {fault}" for fault in report.faults]
    score = round(report.score * (plan.late_share if submission.late else 1), 2)
    row = Grade(submission.student, submission.lab, score, material.lab.points, "; ".join(notes))
    try:
        feedback.write(row, report, str(plan.protections), plan.folder / "feedback")
    except OSError as error:
        problems.append(f"{submission.student} {submission.lab}: no page of feedback: {error}")
    return row, problems


def _nothing(material: Material) -> Report:
    return Report([Graded(exercise, Verdict(NOT_DONE)) for exercise in material.lab])


def _write_report(result: Result, plan: Plan) -> None:
    report = {
        "seed": plan.seed,
        "seconds": round(result.seconds, 1),
        "protections": str(plan.protections),
        "look_at": result.faults,
    }
    (plan.folder / "report.json").write_text(json.dumps(report, indent=2) + "\n")
