"""Answers to the first exercise of lab 02 as students give them; the others are in answers_02_tensorflow."""

from lab_02.given import SYMPTOMS
from lab_02.hints import Lab02Hint

from tests.distlab.labs.known_wrong import LabAnswers, written_solution

ANSWERS = LabAnswers()

SOLUTION = written_solution("02", "diagnosis")


def but_for(symptom, cause, *hint):
    title = f"{symptom}_because_{cause}".replace(" ", "_")
    ANSWERS.wrong_value("diagnosis", title, SOLUTION | {symptom: cause}, f"{symptom}: wrong", *hint, share=2 / 3)


but_for("loss", "the learning rate is too large", Lab02Hint.LEARNING_RATE)
but_for("loss", "the weights begin too large", Lab02Hint.FIRST_WEIGHTS)
but_for("loss", "the batch size that was computed is not used", Lab02Hint.ANOTHER_SYMPTOM, "ln 10")
but_for("clock", "the clock starts before the work", Lab02Hint.CLOCK_STARTS_EARLY)
but_for("clock", "the clock stops before the work has ended", Lab02Hint.CLOCK_STOPS_EARLY)
but_for("steps", "the last batch is dropped", Lab02Hint.LAST_BATCH_DROPPED)
but_for("steps", "the images are not shuffled", Lab02Hint.NOT_SHUFFLED)
but_for("steps", "the strategy is slow", Lab02Hint.NOT_IN_THE_LIST)

ANSWERS.right_answers["diagnosis"].append(
    ("with_a_note", {"diagnosis": {"note": "mine", **dict(reversed(list(SOLUTION.items())))}})
)

ANSWERS.solved("diagnosis", SOLUTION, untouched=dict.fromkeys(SYMPTOMS))
