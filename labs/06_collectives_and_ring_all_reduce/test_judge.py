"""Lab 06: other right answers, what is done past the virtual cluster, the pictures."""

import numpy as np
from lab_06.judge import LAB, halving, ring

from distlab import collectives, draw
from tests.distlab.labs.known_wrong import right_answers, verdict_on, wrong_answers

SCATTER, _, RING, HALVING = (exercise.name for exercise in LAB)
HEARD = {}  # what ranks tell each other without a message


def neighbours(rank):
    return (rank.index + 1) % rank.size, (rank.index - 1) % rank.size


async def to_the_left(rank, array):
    pieces = [piece.copy() for piece in np.array_split(array, rank.size)]
    right, left = neighbours(rank)
    for step in range(2 * rank.size - 2):
        incoming = await rank.exchange(left, pieces[(rank.index + step) % rank.size], right)
        index = (rank.index + step + 1) % rank.size
        pieces[index] = pieces[index] + incoming if step < rank.size - 1 else incoming
    return np.concatenate(pieces)


test_another_right_answer_gets_full_marks = right_answers(
    LAB,
    (SCATTER, ring(way=-1)),
    (RING, ring(0, -1, (1, 0), given=lambda rank, total, chunks: total)),
    (RING, to_the_left),
    (HALVING, halving()),
)


async def changes_its_array(rank, array):
    total = await collectives.ring_all_reduce(rank, array)
    array[:] = total
    return total


async def talks_past_the_cluster(rank, array):
    heard = HEARD.setdefault((rank.size, len(array)), {})
    heard[rank.index] = array.copy()
    await rank.compute(1.0)
    return np.sum([heard[index] for index in range(rank.size)], axis=0)


test_what_is_done_past_the_cluster_is_seen = wrong_answers(
    LAB,
    (RING, changes_its_array, 0.75, "the array that a rank was given is changed"),
    (RING, talks_past_the_cluster, 0, "what a rank needs from others must come in messages"),
)


def test_the_picture_shows_the_students_own_run():
    picture = verdict_on(LAB, RING, {RING: ring(0, -1, given=lambda rank, total, chunks: total)}).picture()
    assert "<svg" in picture.svg
    assert "Step 3" in picture.description and "Step 4" not in picture.description
    picture = verdict_on(LAB, RING, {RING: collectives.ring_all_reduce}).picture()
    assert picture.description.endswith("In the end every rank holds what it should.")
    assert picture.description == draw.trace(collectives.ring_all_reduce, 4).describe()
