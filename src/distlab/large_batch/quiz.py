"""Five questions about the four numbers; a wrong answer gets the hint that fits the mistake behind it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from distlab.large_batch.four_numbers import FourNumbers
from distlab.large_batch.schedules import gradual_warm_up

IMAGES, BATCH, RATE = 60_000, 100, 0.01
KNOWN = FourNumbers(IMAGES, 1, BATCH, RATE, BATCH)
WEAK = FourNumbers(IMAGES, 8, BATCH, RATE, BATCH)
STRONG = FourNumbers.of_global_batch(IMAGES, 4, WEAK.global_batch, RATE, BATCH)
WARM_UP_EPOCHS = 3.0


@dataclass(frozen=True)
class Question:
    """One question; `mistakes` has the hint that fits for each of the usual wrong answers."""

    name: str
    text: str
    answer: float
    mistakes: Mapping[float, str]
    hint: str

    def judge(self, answer: object) -> tuple[bool | None, str]:
        """(True, praise), (False, hint), or (None, a reminder) as long as nothing is answered.

        Half a percent is allowed for rounding.
        """
        if answer is None or answer is Ellipsis:
            return None, "not answered yet"
        if isinstance(answer, bool) or not isinstance(answer, int | float):
            return False, f"a number is asked for, not {answer!r}"
        if math.isclose(answer, self.answer, rel_tol=0.005):
            return True, "right"
        close = [hint for value, hint in self.mistakes.items() if math.isclose(answer, value, rel_tol=0.005)]
        return False, close[0] if close else self.hint


QUESTIONS = (
    Question(
        "global_batch",
        "8 replicas, each with a batch of 100: the global batch?",
        WEAK.global_batch,
        {
            WEAK.per_replica_batch: "that is what one replica sees; the all-reduce averages over all of them",
            WEAK.per_replica_batch / WEAK.replicas: "the batch of 100 is each replica's own; nothing is divided here",
        },
        "count the images behind one update of the weights, of all replicas together",
    ),
    Question(
        "steps_per_epoch",
        "The same 8 replicas: how many steps does each of them make in an epoch?",
        WEAK.steps_per_epoch,
        {
            KNOWN.steps_per_epoch: "then every image is used 8 times: that is 8 epochs under one name",
            KNOWN.steps_per_epoch
            * WEAK.replicas: "more replicas make fewer steps, not more: each step takes 8 times the images",
            WEAK.steps_per_epoch / WEAK.replicas: "every replica takes part in every step; steps are not shared out",
        },
        "divide the images of the data set by the images of one step",
    ),
    Question(
        "learning_rate",
        "The same 8 replicas: the learning rate by the linear rule?",
        WEAK.learning_rate,
        {
            RATE: "the step is now the mean of 8 times the images, and there are 8 times fewer steps: it may be longer",
            RATE / WEAK.replicas: "turned round: fewer steps must be longer, not shorter",
            RATE * math.sqrt(WEAK.replicas): "that is the square-root rule",
        },
        "multiply by the ratio of the global batches",
    ),
    Question(
        "rate_with_4_replicas",
        "You go on with 4 replicas and keep the global batch of 800: the learning rate by the linear rule?",
        STRONG.learning_rate,
        {
            RATE * STRONG.replicas: "the rule asks for the ratio of the global batches, not for the number of replicas",
            RATE: "the batch of one device was 100, and it is 800 now",
            RATE
            * STRONG.per_replica_batch
            / BATCH: "the per-replica batch doubled, but the rule asks for the ratio of the global batches",
        },
        "which global batch was 0.01 right for, and how large is the global batch now?",
    ),
    Question(
        "rate_in_warm_up",
        "Gradual warm-up over 3 epochs, from 0.01 to the rate of question 3: the learning rate after 1.5 epochs?",
        gradual_warm_up(RATE, WEAK.learning_rate, WARM_UP_EPOCHS)(1.5),
        {
            WEAK.learning_rate: "it has that only at the end of the warm-up",
            RATE: "that is constant warm-up; gradual warm-up rises in every step",
            WEAK.learning_rate / 2: "half of the way, but the way begins at 0.01, not at 0",
        },
        "half of the warm-up is over: go half of the way from the first rate to the last",
    ),
)


def feedback(answers: Mapping[str, object]) -> list[str]:
    """One line for each question: its number, its name and what there is to say about the answer."""
    lines = []
    for number, question in enumerate(QUESTIONS, 1):
        verdict, words = question.judge(answers.get(question.name))
        lines.append(f"{number} {question.name}: {words if verdict is not False else f'not right: {words}'}")
    known = {question.name for question in QUESTIONS}
    return lines + [f"there is no question {name!r}" for name in answers if name not in known]
