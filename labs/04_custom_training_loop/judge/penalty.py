"""What each replica adds as its part of a penalty on the weights: an exercise of lab 04 and its judge."""

import numpy as np
from lab_04 import replica_losses, replica_values
from lab_04.hints import Lab04Hint
from lab_04.replica_losses import EXAMPLE, GlobalBatch, Losses
from lab_04.replica_values import Case, Values
from numpy.typing import NDArray

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import NotDone, Raised
from distlab.labs.part_cases import PartCase, judge_cases
from distlab.labs.verdict import Advice, AnyHint, Verdict, wrong

PENALTY_EXAMPLE = 0.5


def with_penalty(losses: Losses, penalty: float) -> list[float]:
    """The losses with each replica's part of a penalty, as `tf.nn.scale_regularization_loss` gives it."""
    return [loss + penalty / len(losses) for loss in replica_losses.replica_losses(losses)]


def judge_with_penalty(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A third of the points each, as without the penalty."""

    def part_case(batch: GlobalBatch) -> PartCase:
        penalty = PENALTY_EXAMPLE if batch is EXAMPLE else float(generator.uniform(0.1, 0.9))
        case = _case(batch, penalty)
        return PartCase(case.part, lambda: _verdict(answer, case), case.said)

    return judge_cases([part_case(batch) for batch in (*replica_losses.drawn_batches(generator), EXAMPLE)])


def _verdict(answer: Answer, case: Case) -> Verdict:
    try:
        return case.verdict("with_penalty", answer.call("with_penalty", *case.arguments))
    except Raised as error:
        if "NoneType" in error.message and not _has_exercise_2(answer):
            return wrong(Lab04Hint.EXERCISE_2_FIRST)
        raise


def _has_exercise_2(answer: Answer) -> bool:
    try:
        answer.call("replica_losses", EXAMPLE.losses)
    except NotDone:
        return False
    return True


def _case(batch: GlobalBatch, penalty: float) -> Case:
    losses = np.array(replica_losses.replica_losses(batch.losses))

    def otherwise(answer: list[float]) -> AnyHint:
        each = np.array(answer) - losses
        if np.allclose(each, each[0]):
            return Lab04Hint.PENALTY_SUM.says(total=float(each.sum()), penalty=penalty)
        mean, total = float(losses.sum()), sum(answer)
        if replica_values.are_near([total], [mean + penalty]):
            return Lab04Hint.PENALTY_PARTS
        return Lab04Hint.PENALTY_OTHERWISE.says(total=total, mean=mean, penalty=penalty, right=mean + penalty)

    said = f"{batch}, penalty {penalty:.3g}: "
    values = with_penalty(batch.losses, penalty)
    arguments = (batch.losses, penalty)
    return Case(batch.part, arguments, said, "examples", batch.counts, values, _mistakes(batch, penalty), otherwise)


def _mistakes(batch: GlobalBatch, penalty: float) -> list[tuple[Values, AnyHint]]:
    """Mistakes with the penalty, then with the losses, then with both."""
    losses, of_exercise_2 = np.array(replica_losses.replica_losses(batch.losses)), replica_losses.mistakes(batch)
    right, terms = penalty / len(losses), _wrong_terms(batch, penalty)
    return [
        *((losses + term, hint) for term, hint in terms),
        (losses * (1 + penalty), Lab04Hint.PENALTY_TIMES_LOSS),
        (np.full(len(losses), right), Lab04Hint.LOSSES_MISSING),
        *(
            (np.asarray(mistaken) + right, Advice.of(hint).after("the penalty is right, the losses are not: "))
            for mistaken, hint in of_exercise_2
        ),
        *(
            (mistaken + term, Advice.of(hint).after("the penalty is wrong, and so are the losses: "))
            for mistaken, hint in of_exercise_2
            for term, _ in terms
        ),
    ]


def _wrong_terms(batch: GlobalBatch, penalty: float) -> list[tuple[NDArray[np.float64], AnyHint]]:
    """What the replicas may add as their parts of the penalty by mistake."""
    replicas, counts = len(batch.losses), np.array(batch.counts)
    filled, everywhere, first = counts > 0, np.ones(replicas), np.eye(replicas)[0]
    return [
        (0 * everywhere, Lab04Hint.PENALTY_FORGOTTEN),
        (penalty * everywhere, Lab04Hint.PENALTY_ON_EACH),
        (penalty / batch.examples * everywhere, Lab04Hint.PENALTY_BY_EXAMPLES),
        (penalty / np.maximum(counts, 1), Lab04Hint.PENALTY_BY_OWN_EXAMPLES),
        (filled * penalty / np.maximum(counts, 1), Lab04Hint.PENALTY_BY_OWN_EXAMPLES),
        (first * penalty, Lab04Hint.PENALTY_ON_ONE),
        (first[::-1] * penalty, Lab04Hint.PENALTY_ON_ONE),
        (filled * penalty / replicas, Lab04Hint.PENALTY_NOT_ON_EMPTY),
        (filled * penalty / filled.sum(), Lab04Hint.PENALTY_UNEVEN),
        (counts / batch.examples * penalty, Lab04Hint.PENALTY_UNEVEN),
        (-penalty / replicas * everywhere, Lab04Hint.PENALTY_SUBTRACTED),
    ]
