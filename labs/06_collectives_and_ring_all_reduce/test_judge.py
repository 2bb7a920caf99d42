"""Lab 06: other right answers, what is done past the virtual cluster, the pictures."""

import numpy as np
import pytest
from lab_06.judge import LAB, gathering, halving, ring

from distlab import collectives, draw
from tests.distlab.labs.known_wrong import right_answers, verdict_on, wrong_answers

SCATTER, GATHER, RING, HALVING = (exercise.name for exercise in LAB)
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


WRONG_RESULTS = {
    "a list": lambda result, rank, array: list(result),
    "a mean": lambda result, rank, array: result / 3,
    "the wrong order": lambda result, rank, array: result[::-1],
    "the input of one rank": lambda result, rank, array: array if rank.index == 1 else result,
}
RIGHT_PROGRAMS = {SCATTER: ring(), GATHER: gathering(), RING: to_the_left, HALVING: halving()}


def description(name, program):
    """The words of the picture of a wrong answer."""
    verdict = verdict_on(LAB, name, {name: program})
    assert verdict.share < 1
    return verdict.picture().description


@pytest.mark.parametrize("what", WRONG_RESULTS)
@pytest.mark.parametrize("name", RIGHT_PROGRAMS)
def test_the_picture_of_a_wrong_result_never_says_that_all_is_right(name, what):
    async def program(rank, array):
        return WRONG_RESULTS[what](await RIGHT_PROGRAMS[name](rank, array), rank, array)

    assert "every rank holds what it should" not in description(name, program)


@pytest.mark.parametrize("offset", [-1, 1, 2])
def test_a_chunk_that_should_not_be_returned_is_named(offset):
    program = ring(given=lambda rank, total, chunks: chunks[(rank.index + offset) % rank.size])
    returned = f"In the end chunk {offset % 4} of rank 0 is returned, but chunk 0 is needed. 4 chunks are wrong"
    assert returned in description(SCATTER, program)
    hint = verdict_on(LAB, SCATTER, {SCATTER: program}).text
    assert "Which chunk is finished on this rank, and which do you return?" in hint
