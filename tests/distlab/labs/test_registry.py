"""Opening a lab, and its check in a notebook."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

from distlab import labs
from distlab.labs import OpenLab, Picture, registry, right, wrong
from distlab.labs.lab import Exercise, Lab, NoSuchExercise
from distlab.labs.registry import NotRightYet
from tests.distlab.labs import sample_lab


@pytest.fixture(autouse=True)
def no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts are printed, although another test may have started a kernel in this process."""
    monkeypatch.setattr(registry, "_shell", lambda: None)


def test_a_check_prints_its_verdict_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    namespace = {}
    lab = OpenLab(sample_lab.lab(), namespace)
    for steps in (None, 5, 6):
        namespace["steps"] = steps
        lab.check("steps")
    assert capsys.readouterr().out.splitlines() == [
        "steps: … not done yet. `steps` is still empty.",
        "steps: ✘ not right yet: count again",
        "steps: ✔ right",
    ]


def test_a_check_shows_the_picture_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    displayed = []
    monkeypatch.setattr("IPython.display.display", lambda bundle, raw: displayed.append(bundle))
    picture = Picture("<svg/>", "A ring of four ranks that stands still")
    lab = Lab("90_sample", [Exercise("mean", 1, lambda answer, generator: wrong("no", picture=lambda: picture))])
    OpenLab(lab, {}).check("mean")
    assert displayed == [{"image/svg+xml": "<svg/>", "text/plain": "A ring of four ranks that stands still"}]


def test_a_check_that_is_interrupted_ends_in_a_sentence_and_the_next_one_works(
    capsys: pytest.CaptureFixture[str],
) -> None:
    namespace = {}
    interrupted = "def mean(values):\n    os.kill(os.getpid(), signal.SIGINT)\n    while True:\n        pass"
    exec(f"import os, signal\n\n{interrupted}", namespace)
    shell = InteractiveShell()
    shell.user_ns["lab"] = OpenLab(sample_lab.lab(), namespace)
    result = shell.run_cell('lab.check("mean")')
    assert isinstance(result.error_in_exec, KeyboardInterrupt)
    namespace["steps"] = 6
    assert shell.run_cell('lab.check("steps")').success
    assert capsys.readouterr().out.splitlines() == [
        "mean: interrupted; run the cell again to check it.",
        "steps: ✔ right",
    ]


def test_a_lab_is_opened_by_its_number_with_what_it_gives() -> None:
    lab = labs.open("07")
    assert "F" in lab.given.BROKEN
    with pytest.raises(NoSuchExercise, match="no exercise 'median'; there are tf_config, "):
        lab.check("median")


def test_points_come_from_inputs_that_the_check_has_not_used() -> None:
    seen = []

    def judge(answer: object, generator: object) -> object:
        seen.append(generator.integers(2**60))
        return right() if len(seen) % 2 else wrong("half", share=0.5)

    lab = OpenLab(Lab("90_sample", [Exercise("mean", 3, judge)]), {})
    assert [lab.points("mean"), lab.points("mean")] == [3, 1.5]
    lab.verdict("mean")
    assert len(set(seen)) == 3


def test_while_nbgrader_validates_only_a_right_answer_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    namespace = {"steps": 6}
    lab = OpenLab(sample_lab.lab(), namespace)
    lab.check("steps")
    assert capsys.readouterr().out == "steps: ✔ right\n"
    for steps, sign in ((None, "not done yet"), (5, "not right yet: count again")):
        namespace["steps"] = steps
        with pytest.raises(NotRightYet, match=sign):
            lab.check("steps")
