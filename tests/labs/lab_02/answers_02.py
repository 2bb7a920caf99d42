"""Answers to the first exercise of lab 02 as students give them; the others are in answers_02_tensorflow."""

from distlab.labs.lab_02.lab import SYMPTOMS
from tests.labs.known_wrong import LabAnswers, written_solution

ANSWERS = LabAnswers()

SOLUTION = written_solution("02", "diagnosis")


def but_for(symptom, cause, *hint):
    title = f"{symptom}_because_{cause}".replace(" ", "_")
    ANSWERS.wrong_value("diagnosis", title, SOLUTION | {symptom: cause}, f"{symptom}: wrong", *hint, share=2 / 3)


but_for("loss", "the learning rate is too large", "no step has been made")
but_for("loss", "the weights begin too large", "what is done with those")
but_for("loss", "the batch size that was computed is not used", "not behind this symptom", "ln 10")
but_for("clock", "the clock starts before the work", "what would be measured if it did not")
but_for("clock", "the clock stops before the work has ended", "too short but waiting")
but_for("steps", "the last batch is dropped", "one step fewer")
but_for("steps", "the images are not shuffled", "order of images")
but_for("steps", "the strategy is slow", "not in the list")

ANSWERS.right_answers["diagnosis"].append(
    ("with_a_note", {"diagnosis": {"note": "mine", **dict(reversed(list(SOLUTION.items())))}})
)

ANSWERS.solved("diagnosis", SOLUTION, untouched=dict.fromkeys(SYMPTOMS))
