"""Answers to lab 06 as students give them."""

import numpy as np
from lab_06.hints import Lab06Hint

from distlab import collectives
from distlab.simulate import Rank
from tests.distlab.labs.known_wrong import LabAnswers

ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right


def neighbours(rank: Rank) -> tuple[int, int]:
    return (rank.index + 1) % rank.size, (rank.index - 1) % rank.size


# What ranks tell each other without a message
HEARD = {}


# Reduce-scatter


@wrong("reduce_scatter", Lab06Hint.WRONG_NEIGHBOUR)
async def receives_from_the_right(rank, array):
    chunks = np.array_split(array.copy(), rank.size)
    right = (rank.index + 1) % rank.size
    for step in range(rank.size - 1):
        received = await rank.exchange(right, chunks[(rank.index - step - 1) % rank.size], right)
        await rank.reduce(chunks[(rank.index - step - 2) % rank.size], received)
    return chunks[rank.index]


@wrong("reduce_scatter", Lab06Hint.NO_SUCH_NEIGHBOUR)
async def forgets_that_the_ring_is_closed(rank, array):
    chunks = np.array_split(array.copy(), rank.size)
    for step in range(rank.size - 1):
        received = await rank.exchange(rank.index + 1, chunks[(rank.index - step - 1) % rank.size], rank.index - 1)
        await rank.reduce(chunks[(rank.index - step - 2) % rank.size], received)
    return chunks[rank.index]


@wrong("reduce_scatter", Lab06Hint.ANOTHER_CHUNK_IS_FINISHED)
async def finishes_the_chunk_of_the_right_neighbour(rank, array):
    chunks = np.array_split(array.copy(), rank.size)
    right, left = neighbours(rank)
    for step in range(rank.size - 1):
        received = await rank.exchange(right, chunks[(rank.index - step) % rank.size], left)
        await rank.reduce(chunks[(rank.index - step - 1) % rank.size], received)
    return chunks[right]


@wrong("reduce_scatter", Lab06Hint.FINISHED_CHUNK, "chunk 2 that is finished")
async def returns_a_chunk_that_is_not_finished(rank, array):
    chunks = np.array_split(array.copy(), rank.size)
    right, left = neighbours(rank)
    for step in range(rank.size - 1):
        received = await rank.exchange(right, chunks[(rank.index - step + 1) % rank.size], left)
        await rank.reduce(chunks[(rank.index - step) % rank.size], received)
    return chunks[rank.index]


@wrong("reduce_scatter", Lab06Hint.UNLIKE_ADDED, Lab06Hint.OFF_BY_ONE)
async def adds_to_the_chunk_that_it_sent(rank, array):
    chunks = np.array_split(array.copy(), rank.size)
    right, left = neighbours(rank)
    for step in range(rank.size - 1):
        outgoing = chunks[(rank.index - step - 1) % rank.size]
        received = await rank.exchange(right, outgoing, left)
        await rank.reduce(outgoing, received)
    return chunks[rank.index]


@wrong("reduce_scatter", Lab06Hint.EVERYBODY_RECEIVES_FIRST)
async def receives_first(rank, array):
    chunks = np.array_split(array.copy(), rank.size)
    right, left = neighbours(rank)
    for step in range(rank.size - 1):
        received = await rank.receive(left)
        await rank.reduce(chunks[(rank.index - step - 2) % rank.size], received)
        await rank.send(right, chunks[(rank.index - step - 1) % rank.size])
    return chunks[rank.index]


@wrong("reduce_scatter", Lab06Hint.DIVIDED, "divided by 4")
async def gives_the_mean(rank, array):
    return await collectives.reduce_scatter(rank, array) / rank.size


@wrong("reduce_scatter", Lab06Hint.ROUND_MISSING)
async def stops_a_round_early(rank, array):
    chunks = np.array_split(array.copy(), rank.size)
    right, left = neighbours(rank)
    for step in range(rank.size - 2):
        received = await rank.exchange(right, chunks[(rank.index - step - 1) % rank.size], left)
        await rank.reduce(chunks[(rank.index - step - 2) % rank.size], received)
    return chunks[rank.index]


@wrong("reduce_scatter", Lab06Hint.SHARE_TWICE, "twice")
async def goes_a_round_too_far(rank, array):
    chunks = np.array_split(array.copy(), rank.size)
    right, left = neighbours(rank)
    for step in range(rank.size):
        received = await rank.exchange(right, chunks[(rank.index - step) % rank.size], left)
        await rank.reduce(chunks[(rank.index - step - 1) % rank.size], received)
    return chunks[rank.index]


@wrong("reduce_scatter", Lab06Hint.ONLY_SOME_SHARES, Lab06Hint.SENDS_OWN_NUMBERS)
async def sends_its_own_numbers_on(rank, array):
    chunks, sums = np.array_split(array, rank.size), np.array_split(array.copy(), rank.size)
    right, left = neighbours(rank)
    for step in range(rank.size - 1):
        received = await rank.exchange(right, chunks[(rank.index - step - 1) % rank.size], left)
        await rank.reduce(sums[(rank.index - step - 2) % rank.size], received)
    return sums[rank.index]


@wrong("reduce_scatter", Lab06Hint.RETURNS_THE_WHOLE_ARRAY)
async def returns_everything(rank, array):
    total = array.copy()
    chunks = np.array_split(total, rank.size)
    right, left = neighbours(rank)
    for step in range(rank.size - 1):
        received = await rank.exchange(right, chunks[(rank.index - step - 1) % rank.size], left)
        await rank.reduce(chunks[(rank.index - step - 2) % rank.size], received)
    return total


@wrong(
    "reduce_scatter", Lab06Hint.RESULT_IS_RIGHT, Lab06Hint.TOO_MANY_BYTES, Lab06Hint.SENDS_THE_WHOLE_ARRAY, share=0.75
)
async def sends_the_whole_array(rank, array):
    total = array.copy()
    chunks = np.array_split(total, rank.size)
    right, left = neighbours(rank)
    for step in range(rank.size - 1):
        received = await rank.exchange(right, total, left)
        index = (rank.index - step - 2) % rank.size
        await rank.reduce(chunks[index], np.array_split(received, rank.size)[index])
    return chunks[rank.index]


@wrong("reduce_scatter", Lab06Hint.UNEQUAL_CHUNKS, Lab06Hint.RETURNS_ANOTHER_SHAPE, share=0.25)
async def cuts_chunks_of_one_length(rank, array):
    length = len(array) // rank.size
    total = array.copy()
    chunks = [total[index * length : (index + 1) * length] for index in range(rank.size)]
    right, left = neighbours(rank)
    for step in range(rank.size - 1):
        received = await rank.exchange(right, chunks[(rank.index - step - 1) % rank.size], left)
        await rank.reduce(chunks[(rank.index - step - 2) % rank.size], received)
    return chunks[rank.index]


@wrong("reduce_scatter", Lab06Hint.INPUT_CHANGED, share=0.75)
async def works_on_the_callers_array(rank, array):
    chunks = np.array_split(array, rank.size)
    right, left = neighbours(rank)
    for step in range(rank.size - 1):
        received = await rank.exchange(right, chunks[(rank.index - step - 1) % rank.size], left)
        await rank.reduce(chunks[(rank.index - step - 2) % rank.size], received)
    return chunks[rank.index]


@wrong("reduce_scatter", Lab06Hint.RUN_ENDED, "Rank 0 calls", "await rank.exchange")
async def forgets_to_await(rank, array):
    chunks = np.array_split(array.copy(), rank.size)
    right, left = neighbours(rank)
    for step in range(rank.size - 1):
        received = rank.exchange(right, chunks[(rank.index - step - 1) % rank.size], left)
        await rank.reduce(chunks[(rank.index - step - 2) % rank.size], received)
    return chunks[rank.index]


@wrong("reduce_scatter", Lab06Hint.FINISHED_CHUNK, "chunk 1 that is finished", "returns chunk 0")
async def returns_its_own_index_after_the_chapters_ring(rank, array):
    chunks = np.array_split(array.copy(), rank.size)
    right, left = neighbours(rank)
    for step in range(rank.size - 1):
        received = await rank.exchange(right, chunks[(rank.index - step) % rank.size], left)
        await rank.reduce(chunks[(rank.index - step - 1) % rank.size], received)
    return chunks[rank.index]


@wrong("reduce_scatter", Lab06Hint.UNLIKE_IN_RESULT, Lab06Hint.OTHER_DIRECTION)
async def left_and_right_swapped(rank, array):
    chunks = np.array_split(array.copy(), rank.size)
    left, right = neighbours(rank)
    for step in range(rank.size - 1):
        received = await rank.exchange(right, chunks[(rank.index - step - 1) % rank.size], left)
        await rank.reduce(chunks[(rank.index - step - 2) % rank.size], received)
    return chunks[rank.index]


@wrong("reduce_scatter", Lab06Hint.RESULT_IS_RIGHT, Lab06Hint.NOT_A_RING, share=0.5)
async def from_everybody_to_everybody(rank, array):
    chunks = np.array_split(array, rank.size)
    total = chunks[rank.index].copy()
    for distance in range(1, rank.size):
        to, source = (rank.index + distance) % rank.size, (rank.index - distance) % rank.size
        total += await rank.exchange(to, chunks[to], source)
    return total


@right("reduce_scatter")
async def round_the_other_way_with_send_and_receive(rank, array):
    pieces = [piece.copy() for piece in np.array_split(array, rank.size)]
    right, left = neighbours(rank)
    travelling = pieces[(rank.index + 1) % rank.size]
    for step in range(rank.size - 1):
        await rank.send(left, travelling)
        travelling = pieces[(rank.index + step + 2) % rank.size] + await rank.receive(right)
    return travelling if rank.size > 1 else pieces[0]


# All-gather


@wrong("all_gather", Lab06Hint.RETURNS_A_LIST)
async def returns_a_list_of_chunks(rank, chunk):
    parts = [chunk] * rank.size
    right, left = neighbours(rank)
    for step in range(rank.size - 1):
        outgoing = parts[(rank.index - step) % rank.size]
        parts[(rank.index - step - 1) % rank.size] = await rank.exchange(right, outgoing, left)
    return parts


@wrong("all_gather", Lab06Hint.ORDER_OF_ARRIVAL)
async def puts_them_in_order_of_arrival(rank, chunk):
    parts = [chunk]
    right, left = neighbours(rank)
    for _ in range(rank.size - 1):
        parts.append(await rank.exchange(right, parts[-1], left))
    return np.concatenate(parts)


@wrong("all_gather", Lab06Hint.ONE_SOURCE)
async def always_sends_its_own(rank, chunk):
    parts = [chunk] * rank.size
    right, left = neighbours(rank)
    for step in range(rank.size - 1):
        parts[(rank.index - step - 1) % rank.size] = await rank.exchange(right, chunk, left)
    return np.concatenate(parts)


@wrong("all_gather", Lab06Hint.GATHER_ADDS)
async def adds_what_it_gathers(rank, chunk):
    total = chunk.copy()
    right, left = neighbours(rank)
    travelling = chunk
    for _ in range(rank.size - 1):
        travelling = await rank.exchange(right, travelling, left)
        total = total + travelling
    return np.concatenate([total] * rank.size)


@wrong("all_gather", Lab06Hint.ROUND_MISSING)
async def gathers_a_round_too_few(rank, chunk):
    parts = [chunk] * rank.size
    right, left = neighbours(rank)
    for step in range(rank.size - 2):
        outgoing = parts[(rank.index - step) % rank.size]
        parts[(rank.index - step - 1) % rank.size] = await rank.exchange(right, outgoing, left)
    return np.concatenate(parts)


@wrong(
    "all_gather",
    Lab06Hint.RESULT_IS_RIGHT,
    Lab06Hint.TOO_MANY_STEPS,
    Lab06Hint.ONE_ROUND_TOO_MANY,
    Lab06Hint.TOO_MANY_BYTES,
    Lab06Hint.LONG_WAY,
    share=0.5,
)
async def gathers_a_round_too_many(rank, chunk):
    parts = [chunk] * rank.size
    right, left = neighbours(rank)
    for step in range(rank.size):
        outgoing = parts[(rank.index - step) % rank.size]
        if rank.size > 1:
            parts[(rank.index - step - 1) % rank.size] = await rank.exchange(right, outgoing, left)
    return np.concatenate(parts)


@wrong(
    "all_gather",
    Lab06Hint.RESULT_IS_RIGHT,
    Lab06Hint.TOO_MANY_STEPS,
    Lab06Hint.THROUGH_RANK_0,
    Lab06Hint.TOO_MANY_BYTES,
    Lab06Hint.SENDS_THE_WHOLE_ARRAY,
    share=0.5,
)
async def gathers_on_rank_0_and_broadcasts(rank, chunk):
    if rank.index > 0:
        await rank.send(0, chunk)
        return await rank.receive(0)
    whole = np.concatenate([chunk] + [await rank.receive(source) for source in range(1, rank.size)])
    for to in range(1, rank.size):
        await rank.send(to, whole)
    return whole


@wrong("all_gather", Lab06Hint.UNEQUAL_CHUNKS, Lab06Hint.LENGTH_OF_ANOTHER_CHUNK, share=0.25)
async def makes_room_for_equal_chunks(rank, chunk):
    whole = np.zeros(len(chunk) * rank.size, chunk.dtype)
    parts = np.split(whole, rank.size)
    parts[rank.index][:] = chunk
    right, left = neighbours(rank)
    for step in range(rank.size - 1):
        outgoing = parts[(rank.index - step) % rank.size]
        parts[(rank.index - step - 1) % rank.size][:] = await rank.exchange(right, outgoing, left)
    return whole


@wrong("all_gather", Lab06Hint.NEVER_RECEIVED)
async def sends_in_more_rounds_than_it_receives(rank, chunk):
    parts = [chunk] * rank.size
    right, left = neighbours(rank)
    for step in range(rank.size - 1):
        outgoing = parts[(rank.index - step) % rank.size]
        parts[(rank.index - step - 1) % rank.size] = await rank.exchange(right, outgoing, left)
    await rank.send(right, chunk)
    return np.concatenate(parts)


@right("all_gather")
async def to_the_left_with_a_dictionary(rank, chunk):
    right, left = neighbours(rank)
    found, travelling = {rank.index: chunk}, chunk
    for step in range(1, rank.size):
        await rank.send(left, travelling)
        travelling = found[(rank.index + step) % rank.size] = await rank.receive(right)
    return np.hstack([found[source] for source in sorted(found)])


@wrong("all_gather", Lab06Hint.RESULT_IS_RIGHT, Lab06Hint.NOT_A_RING, share=0.5)
async def everybody_to_everybody(rank, chunk):
    parts = [chunk] * rank.size
    for distance in range(1, rank.size):
        source = (rank.index - distance) % rank.size
        parts[source] = await rank.exchange((rank.index + distance) % rank.size, chunk, source)
    return np.concatenate(parts)


# Ring all-reduce


def ring(second_outgoing, second_target, replace=True, first_rounds=1, second_rounds=1, scale=None):
    """A ring all-reduce whose second half takes these chunks, counted from rank − step."""

    async def program(rank, array):
        total = array.copy()
        chunks = np.array_split(total, rank.size)
        right, left = neighbours(rank)
        for step in range(rank.size - first_rounds):
            received = await rank.exchange(right, chunks[(rank.index - step) % rank.size], left)
            await rank.reduce(chunks[(rank.index - step - 1) % rank.size], received)
        for step in range(rank.size - second_rounds):
            outgoing = chunks[(rank.index - step + second_outgoing) % rank.size]
            target = chunks[(rank.index - step + second_target) % rank.size]
            received = await rank.exchange(right, outgoing, left)
            if replace:
                target[:] = received
            else:
                await rank.reduce(target, received)
        return total if scale is None else total / scale(rank.size)

    return program


for title, program, hints in (
    ("sends_the_unfinished_chunk_first", ring(0, -1), [Lab06Hint.ONLY_SOME_SHARES, Lab06Hint.UNFINISHED_CHUNK_SENT]),
    ("adds_in_the_second_half", ring(1, 0, replace=False), [Lab06Hint.SHARE_TWICE, Lab06Hint.SECOND_HALF_ADDS]),
    ("puts_the_finished_chunk_in_a_wrong_place", ring(1, 1), [Lab06Hint.PUT_ELSEWHERE]),
    ("divides_by_the_ranks", ring(1, 0, scale=lambda size: size), [Lab06Hint.DIVIDED, "divided by 4"]),
    (
        "divides_by_the_ranks_less_one",
        ring(1, 0, scale=lambda size: size - 1 or 1),
        [Lab06Hint.DIVIDED, "divided by 3"],
    ),
    ("stops_the_second_half_early", ring(1, 0, second_rounds=2), [Lab06Hint.ROUND_MISSING]),
):
    ANSWERS.wrong_value("ring_all_reduce", title, program, *hints)


@wrong("ring_all_reduce", Lab06Hint.ONLY_SOME_SHARES, Lab06Hint.SECOND_HALF_MISSING)
async def forgets_the_second_half(rank, array):
    total = array.copy()
    chunks = np.array_split(total, rank.size)
    right, left = neighbours(rank)
    for step in range(rank.size - 1):
        received = await rank.exchange(right, chunks[(rank.index - step) % rank.size], left)
        await rank.reduce(chunks[(rank.index - step - 1) % rank.size], received)
    return total


@wrong("ring_all_reduce", Lab06Hint.OWN_SHARE_ONLY)
async def returns_what_it_was_given(rank, array):
    await collectives.ring_all_reduce(rank, array)
    return array


@wrong("ring_all_reduce", Lab06Hint.RETURNS_A_PART)
async def returns_only_its_chunk(rank, array):
    return await collectives.reduce_scatter(rank, array)


@wrong(
    "ring_all_reduce",
    Lab06Hint.RESULT_IS_RIGHT,
    Lab06Hint.TOO_MANY_STEPS,
    Lab06Hint.THROUGH_RANK_0,
    Lab06Hint.TOO_MANY_BYTES,
    Lab06Hint.LONG_WAY,
    share=0.5,
)
async def through_rank_0(rank, array):
    chunks = np.array_split(array, rank.size)
    if rank.index:
        for part in chunks:
            await rank.send(0, part)
        return np.concatenate([await rank.receive(0) for _ in chunks])
    total = array.copy()
    sums = np.array_split(total, rank.size)
    for source in range(1, rank.size):
        for part in sums:
            await rank.reduce(part, await rank.receive(source))
    for to in range(1, rank.size):
        for part in sums:
            await rank.send(to, part)
    return total


@wrong(
    "ring_all_reduce", Lab06Hint.RESULT_IS_RIGHT, Lab06Hint.TOO_MANY_BYTES, Lab06Hint.SENDS_THE_WHOLE_ARRAY, share=0.75
)
async def passes_whole_arrays_round(rank, array):
    total, travelling = array.copy(), array
    right, left = neighbours(rank)
    for _ in range(rank.size - 1):
        travelling = await rank.exchange(right, travelling, left)
        await rank.reduce(total, travelling)
    return total


@wrong("ring_all_reduce", Lab06Hint.ONLY_ON_ONE_RANK, Lab06Hint.OWN_NEIGHBOUR, share=0.25)
async def does_not_think_of_a_single_rank(rank, array):
    total = array.copy()
    chunks = np.array_split(total, rank.size)
    right, left = neighbours(rank)
    received = await rank.exchange(right, chunks[rank.index], left)
    await rank.reduce(chunks[left], received)
    for step in range(1, rank.size - 1):
        received = await rank.exchange(right, chunks[(rank.index - step) % rank.size], left)
        await rank.reduce(chunks[(rank.index - step - 1) % rank.size], received)
    for step in range(rank.size - 1):
        outgoing = chunks[(rank.index - step + 1) % rank.size]
        chunks[(rank.index - step) % rank.size][:] = await rank.exchange(right, outgoing, left)
    return total


@wrong("ring_all_reduce", Lab06Hint.RESULT_NOT_WRITTEN)
async def keeps_what_arrives_in_the_list_alone(rank, array):
    total = array.copy()
    chunks = np.array_split(total, rank.size)
    right, left = neighbours(rank)
    for step in range(rank.size - 1):
        received = await rank.exchange(right, chunks[(rank.index - step) % rank.size], left)
        await rank.reduce(chunks[(rank.index - step - 1) % rank.size], received)
    for step in range(rank.size - 1):
        outgoing = chunks[(rank.index - step + 1) % rank.size]
        chunks[(rank.index - step) % rank.size] = await rank.exchange(right, outgoing, left)
    return total


@wrong("ring_all_reduce", Lab06Hint.RESULT_IS_RIGHT, Lab06Hint.NOT_A_RING, share=0.5)
async def directly_in_both_halves(rank, array):
    own = await from_everybody_to_everybody(rank, array)
    return await everybody_to_everybody(rank, own)


@wrong("ring_all_reduce", Lab06Hint.RUN_ENDED, "sends the coroutine all_gather", "await all_gather")
async def forgets_the_inner_await(rank, array):
    own = collectives.all_gather(rank, await collectives.reduce_scatter(rank, array))
    return await collectives.all_gather(rank, own)


@wrong("ring_all_reduce", Lab06Hint.RESULT_IS_RIGHT, Lab06Hint.TOO_LITTLE_IS_SENT)
async def talks_past_the_cluster(rank, array):
    heard = HEARD.setdefault((rank.size, len(array)), {})
    heard[rank.index] = array.copy()
    await rank.compute(1.0)
    return np.sum([heard[index] for index in range(rank.size)], axis=0)


@right("ring_all_reduce")
async def of_the_two_halves(rank, array):
    own = await collectives.reduce_scatter(rank, array)
    return await collectives.all_gather(rank, own)


@right("ring_all_reduce")
async def in_one_loop_to_the_left(rank, array):
    pieces = [piece.copy() for piece in np.array_split(array, rank.size)]
    right, left = neighbours(rank)
    for step in range(2 * rank.size - 2):
        incoming = await rank.exchange(left, pieces[(rank.index + step) % rank.size], right)
        index = (rank.index + step + 1) % rank.size
        pieces[index] = pieces[index] + incoming if step < rank.size - 1 else incoming
    return np.concatenate(pieces)


# Halving and doubling


def halving_doubling(
    partner_of=lambda index, distance: index ^ distance,
    keeps_lower=lambda index, partner: index < partner,
    backwards=True,
    replace=True,
    middle_of=lambda low, high: (low + high) // 2,
):
    """Halving and doubling for powers of two."""

    async def program(rank, array):
        total = array.copy()
        low, high, distance, splits = 0, len(total), rank.size // 2, []
        while distance:
            partner = partner_of(rank.index, distance)
            middle = middle_of(low, high)
            mine, theirs = slice(low, middle), slice(middle, high)
            if not keeps_lower(rank.index, partner):
                mine, theirs = theirs, mine
            await rank.reduce(total[mine], await rank.exchange(partner, total[theirs], partner))
            splits.append((partner, mine, theirs))
            low, high, distance = mine.start, mine.stop, distance // 2
        for partner, mine, theirs in reversed(splits) if backwards else splits:
            received = await rank.exchange(partner, total[mine], partner)
            if replace:
                total[theirs] = received
            else:
                total[theirs] += received
        return total

    return program


NAME = "halving_doubling_all_reduce"
for title, program, hints in (
    ("partner_by_adding", halving_doubling(lambda index, distance: index + distance), [Lab06Hint.NO_SUCH_PARTNER]),
    (
        "both_keep_the_lower_half",
        halving_doubling(keeps_lower=lambda index, partner: True),
        [Lab06Hint.UNLIKE_IN_RESULT, Lab06Hint.ANOTHER_HALF],
    ),
    (
        "doubles_in_the_order_of_halving",
        halving_doubling(backwards=False),
        [Lab06Hint.ONLY_SOME_SHARES, Lab06Hint.ORDER_OF_HALVES],
    ),
    ("adds_when_doubling", halving_doubling(replace=False), [Lab06Hint.SHARE_TWICE, Lab06Hint.DOUBLING_ADDS]),
):
    ANSWERS.wrong_value(NAME, title, program, *hints)
ANSWERS.wrong_value(
    NAME,
    "only_powers_of_two",
    halving_doubling(),
    Lab06Hint.OTHER_NUMBERS_OF_RANKS,
    Lab06Hint.NO_SUCH_PARTNER,
    share=0.75,
)


@wrong(NAME, Lab06Hint.RESULT_IS_RIGHT, Lab06Hint.TOO_MANY_BYTES, Lab06Hint.SENDS_THE_WHOLE_ARRAY, share=0.75 * 0.75)
async def recursive_doubling_of_whole_arrays(rank, array):
    return await collectives.recursive_doubling_all_reduce(rank, array)


@wrong(NAME, Lab06Hint.RESULT_IS_RIGHT, Lab06Hint.TOO_MANY_STEPS, Lab06Hint.DOES_NOT_HALVE, share=0.75 * 0.75)
async def a_ring(rank, array):
    return await collectives.ring_all_reduce(rank, array)


@wrong(NAME, Lab06Hint.OTHER_NUMBERS_OF_RANKS, Lab06Hint.EXTRA_RANKS, "rank 2 cannot", share=0.75)
async def leaves_the_other_ranks_out(rank, array):
    power = 1 << (rank.size.bit_length() - 1)
    if rank.index >= power:
        return array.copy()
    return await collectives.halving_doubling_all_reduce(collectives.GroupRank(rank, range(power)), array)


@right(NAME)
async def guests_are_the_last_ranks(rank, array):
    power = 1 << (rank.size.bit_length() - 1)
    if rank.index >= power:
        await rank.send(rank.index - power, array)
        return await rank.receive(rank.index - power)
    total = array.copy()
    has_guest = rank.index + power < rank.size
    if has_guest:
        total += await rank.receive(rank.index + power)
    group = collectives.GroupRank(rank, range(power))
    total = await halving_doubling()(group, total)
    if has_guest:
        await rank.send(rank.index + power, total)
    return total


@right(NAME)
async def recursively(rank, array):
    async def on(group, part):
        if group.size == 1:
            return part
        half = group.size // 2
        partner = (group.index + half) % group.size
        lower, upper = np.array_split(part, 2)
        keep, give = (lower, upper) if group.index < half else (upper, lower)
        keep = keep + await group.exchange(partner, give, partner)
        members = range(half) if group.index < half else range(half, group.size)
        keep = await on(collectives.GroupRank(group, members), keep)
        other = await group.exchange(partner, keep, partner)
        return np.concatenate([keep, other] if group.index < half else [other, keep])

    too_many = rank.size - (1 << (rank.size.bit_length() - 1))
    members = [*range(1, 2 * too_many, 2), *range(2 * too_many, rank.size)]
    if rank.index not in members:
        await rank.send(rank.index + 1, array)
        return await rank.receive(rank.index + 1)
    guest = rank.index - 1 if rank.index < 2 * too_many else None
    start = array if guest is None else array + await rank.receive(guest)
    total = await on(collectives.GroupRank(rank, members), start.copy())
    if guest is not None:
        await rank.send(guest, total)
    return total


async def untouched(rank, array): ...


for name in ("reduce_scatter", "all_gather", "ring_all_reduce", "halving_doubling_all_reduce"):
    ANSWERS.solved(name, getattr(collectives, name), untouched)
