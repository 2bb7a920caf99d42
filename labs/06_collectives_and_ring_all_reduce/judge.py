"""The judge of lab 06: a reduce-scatter, an all-gather and two all-reduces, as programs that every rank runs.

A program runs on a virtual cluster that counts steps and bytes, with inputs whose sums say what was added: each element
of each rank's array is another power of eight. A message takes one virtual second and adding none: seconds are steps.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from lab_06.observe import inputs_afterwards

from distlab import collectives, costs, simulate
from distlab.collectives import GroupRank, chunks_of
from distlab.labs import Answer, Exercise, Lab
from distlab.labs.answer_errors import first_sentence, sentence
from distlab.labs.by_programs import ByPrograms, Mistake, Program
from distlab.labs.number_judge import counted
from distlab.labs.plain_data import Array, Plain
from distlab.labs.verdict import Picture, picture
from distlab.simulate import Events, Rank, SimulationError, World
from distlab.simulate.events import COLUMNS, Content

STEPS_ONLY = simulate.Network(latency=1.0, seconds_per_byte=0.0)
BASE = ELEMENT = 8  # of powers, and bytes of a number
MOST_READ, MOST_STEPS = 100, 20  # elements of an array, steps of a picture: there may be millions

Shares = Counter[tuple[int, int]]
"""What is in a sum: (rank, position) of each element that was added, with how often."""

# What a program has to do, and what it may cost ----------------------------------------------------------------------


@dataclass(frozen=True)
class Collective:
    """A collective by its name in `distlab.draw`; `cost` is from ranks and bytes of the whole array."""

    program: Program
    kind: str
    cost: Callable[[int, int], costs.Cost]
    on_ring: bool = True

    def most_steps(self, size: int) -> int:
        """The steps that the program may take; one more where other ranks than 2^k have to wait for a port."""
        return int(self.cost(size, 0).steps) + (not self.on_ring and size.bit_count() > 1)

    def expected(self, inputs: Sequence[Array]) -> list[Array]:
        """What each rank has to return."""
        if self.kind == "all_gather":
            return [np.concatenate(inputs)] * len(inputs)
        total = np.sum(inputs, axis=0)
        return chunks_of(total, len(inputs)) if self.kind == "reduce_scatter" else [total] * len(inputs)


COLLECTIVES = {
    "reduce_scatter": Collective(collectives.reduce_scatter, "reduce_scatter", costs.reduce_scatter_ring),
    "all_gather": Collective(collectives.all_gather, "all_gather", costs.all_gather_ring),
    "ring_all_reduce": Collective(collectives.ring_all_reduce, "all_reduce", partial(costs.all_reduce, "ring")),
    "halving_doubling_all_reduce": Collective(
        collectives.halving_doubling_all_reduce, "all_reduce", partial(costs.all_reduce, "halving_doubling"), False
    ),
}


class Case(NamedTuple):
    """The inputs of a run, by rank; is_watched: they are looked at afterwards.

    owners: rank and position of each element, in the order of their powers, if sums of them can be read.
    """

    collective: Collective
    inputs: list[Array]
    owners: Sequence[tuple[int, int]] = ()
    is_watched: bool = False

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.inputs)

    @property
    def length(self) -> int:
        """The elements of the whole array."""
        lengths = [len(array) for array in self.inputs]
        return sum(lengths) if self.collective.kind == "all_gather" else max(lengths)

    @property
    def most_bytes(self) -> int:
        """The bytes that the rank that sends most may send: those of the formula, if all chunks were the longest."""
        chunks = self.size if self.collective.on_ring else 1 << (self.size.bit_length() - 1)
        is_gather = self.collective.kind == "all_gather"
        longest = max(map(len, self.inputs)) if is_gather else -(-self.length // chunks)
        return int(self.collective.cost(self.size, chunks * longest * ELEMENT).largest_bytes_sent)

    @property
    def least_bytes(self) -> int:
        """What it sends at least, whatever the program (Patarasuk and Yuan 2009)."""
        halves = 2 if self.collective.kind == "all_reduce" else 1
        return halves * (self.size - 1) * (self.length // self.size) * ELEMENT

    def __str__(self) -> str:
        counts = ((self.size, "rank"), (self.length, "element"))
        return ", ".join(counted(count, noun) for count, noun in counts)


def read_case(collective: Collective, size: int, length: int) -> Case:
    """Inputs that can be read in sums: at most 20 elements of all ranks together, 3 bits each."""
    positions = np.arange(length)
    of_ranks = chunks_of(positions, size) if collective.kind == "all_gather" else [positions] * size
    owners = [(rank, int(position)) for rank, own in enumerate(of_ranks) for position in own]
    powers = BASE ** np.arange(len(owners), dtype=np.int64)
    return Case(collective, np.split(powers, np.cumsum([len(own) for own in of_ranks])[:-1]), owners)


def cases(collective: Collective, generator: np.random.Generator) -> list[Case]:
    """The cases of an exercise."""
    is_gather = collective.kind == "all_gather"
    sizes = [(4, 4), (2, 4), (1, 4), (3, 5), (4, 5), (5, 3)]
    drawn = generator.integers(2, 10, 3).tolist()
    if not collective.on_ring:
        sizes = [(4, 4), (2, 4), (1, 4), (8, 2), (4, 5), (2, 5), (3, 3), (3, 6), (6, 3), (5, 4), (7, 2)]
        drawn = [8, 16, *generator.choice([5, 6, 7, 9, 10, 11, 12], 3, replace=False).tolist()]
    lengths = [generator.integers(0 if is_gather else 1, 60, size if is_gather else 1) for size in drawn]
    equal = [generator.integers(-999, 999, 3 if is_gather else 12) for _ in range(4)]
    return [
        *(read_case(collective, *numbers)._replace(is_watched=numbers == (4, 4)) for numbers in sizes),
        Case(collective, equal),
        *(
            Case(collective, [generator.integers(-999, 999, length) for length in np.resize(each, size)])
            for size, each in zip(drawn, lengths, strict=True)
        ),
    ]


# What is seen of a run -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Attempt:
    """One run of a program; what ranks returned, unless `error` ended it; is_changed: the arrays that were given."""

    case: Case
    events: Events
    error: SimulationError | None = None
    results: Sequence[Plain] = ()
    steps: int = 0
    bytes_sent: int = 0
    is_changed: bool = False

    def __eq__(self, other: object) -> bool:
        """Whether it ends alike; wrong results in other steps, or from other messages, come from another mistake."""
        if not isinstance(other, Attempt) or type(self.error) is not type(other.error):
            return False
        is_alike = equal(self.results, self.expected) or self.course == other.course
        is_sent = min(self.bytes_sent, self.case.least_bytes) == min(other.bytes_sent, self.case.least_bytes)
        return is_alike and is_sent and equal(self.results, other.results)

    @cached_property
    def expected(self) -> list[Array]:
        """What each rank has to return."""
        return self.case.collective.expected(self.case.inputs)

    @property
    def sends(self) -> Events:
        """The messages."""
        return self.events.select("send")

    @cached_property
    def course(self) -> tuple[int, int, int]:
        """The steps, the direction of the messages, the most shares in an element of a message."""
        directions = [(int(send.partner or 0) - send.rank) % self.case.size for send in self.sends]
        shares = [shares.total() for send in self.sends for shares in self.read(send.content)]
        return self.steps, max(directions, default=0), max(shares, default=0)

    def partners(self) -> dict[int, list[int]]:
        """To whom each rank sends, if it is no ring: not all send to the next rank, nor all to the one before."""
        partners: dict[int, set[int]] = {}
        for send in self.sends:
            partners.setdefault(send.rank, set()).add(int(send.partner or 0))
        size = self.case.size
        steps = {(partner - rank) % size for rank, peers in partners.items() for partner in peers}
        is_ring = not self.case.collective.on_ring or steps <= {1} or steps <= {size - 1}
        return {} if is_ring else {rank: sorted(peers) for rank, peers in sorted(partners.items())}

    def read(self, array: Plain) -> list[Shares]:
        """What is in each element of an array; nothing where it is not a sum of these inputs."""
        owners = self.case.owners
        values = np.ravel(array)[:MOST_READ].tolist() if owners and kind(array) == "numbers" else []
        return [
            +Counter({owner: int(value) // BASE**place % BASE for place, owner in enumerate(owners)})
            if np.isfinite(value) and 0 <= value < BASE ** len(owners) and value == int(value)
            else Counter()
            for value in values
        ]

    def elements(self) -> Iterator[tuple[int, int, Shares]]:
        """What every rank returned: rank, position, shares."""
        for rank, array in enumerate(self.results):
            for position, shares in enumerate(self.read(array)):
                yield rank, position, shares


def kind(result: Plain) -> str:
    """What a rank returned: numbers in an array, or something else."""
    is_number = isinstance(result, np.ndarray) and result.dtype.kind in "iuf"
    return "numbers" if is_number else type(result).__name__


def equal(results: Sequence[Plain], expected: Sequence[Plain]) -> bool:
    """Whether ranks return the same numbers, or else things of the same type."""
    return len(results) == len(expected) and all(
        kind(one) == kind(other) and (kind(one) != "numbers" or np.array_equal(one, other))
        for one, other in zip(results, expected, strict=True)
    )


def observe(answer: Answer, case: Case) -> Attempt:
    """The program on every rank, with the inputs of a case."""
    name, world = case.collective.program.__name__, World(case.size, STEPS_ONLY)
    world.run = partial(world.run, keep_contents=True)  # type: ignore[method-assign]
    try:
        run = answer.run(name, world, case.inputs)
    except SimulationError as error:
        return Attempt(case, error.events or Events(lambda: np.empty(0, COLUMNS), {}), error)
    given = answer.inside(inputs_afterwards, name, case.inputs) if case.is_watched else case.inputs
    sent, is_changed = int(run.bytes_sent_by_rank.max()), not isinstance(given, list) or not equal(given, case.inputs)
    return Attempt(case, run.events, None, run.results, round(run.elapsed), sent, is_changed)


@dataclass(frozen=True)
class Waste:
    """What is too much in a run: 0 and False if nothing is."""

    amount: tuple[int | bool, ...]
    run: Attempt = field(compare=False)


EQUAL, ANY, STEPS, BYTES = RING_PARTS = ("equal chunks", "any sums", "steps", "bytes")
OTHERS = ("other numbers of ranks", "their steps", "their bytes")
AFTER = {ANY: [EQUAL], STEPS: [EQUAL, ANY], BYTES: [EQUAL, ANY]}
AFTER_OTHERS = AFTER | {OTHERS[0]: RING_PARTS} | {part: (*RING_PARTS, OTHERS[0]) for part in OTHERS[1:]}


def split(case: Case, run: Attempt) -> Mapping[str, Attempt | Waste]:
    """The sums, the steps and the bytes of a run; the two last are wasted on messages off the ring."""
    sums, steps, sent = ANY, STEPS, BYTES
    if case.size == 4 and len({*map(len, case.inputs)}) == 1 and case.length % 4 == 0:
        sums = EQUAL
    if not case.collective.on_ring and case.size.bit_count() > 1:
        sums, steps, sent = OTHERS
    off_ring = bool(run.partners())
    too_many = max(0, run.steps - case.collective.most_steps(case.size))
    too_long = max(0, run.bytes_sent - case.most_bytes)
    wasted = Waste((too_many, off_ring), run), Waste((too_long, off_ring, run.is_changed), run)
    return dict(zip((sums, steps, sent), (run, *wasted), strict=True))


# What is said to a run that is not right -----------------------------------------------------------------------------


def ranks_in(shares: Shares) -> list[int]:
    """Whose elements are in a sum, each rank once."""
    return sorted({rank for rank, _ in shares})


def in_words(ranks: Sequence[int]) -> str:
    """Such as "ranks 0, 2 and 3"."""
    *others, last = map(str, ranks)
    return f"ranks {', '.join(others)} and {last}" if others else f"rank {last}"


def of_error(case: Case, error: SimulationError) -> str:
    """Why a run could not go on."""
    text = str(error).splitlines()[0]
    if isinstance(error, simulate.DeadlockError) and not error.events:
        return (
            "Deadlock: every rank waits for a message, and nobody has sent one. Which operation does each rank begin "
            "with, and can it end before another rank has gone on?"
        )
    if isinstance(error, simulate.DeadlockError):
        rank, (source, to) = min(error.waiting), min(error.unreceived, default=(None, None))
        waits = f"rank {rank} waits for rank {error.waiting[rank].source}"
        if to is None:
            return f"Deadlock: {waits}, which does not send so often. Who sends how many messages?"
        return (
            f"Deadlock with a wrong neighbour: {waits}, while rank {source} has sent to rank {to}, which does not ask "
            "for it. If everybody sends to the right, from where do messages come?"
        )
    if isinstance(error, simulate.UnreceivedMessageError):
        source, to = min(error.unreceived)
        sends = f"Rank {source} sends rank {to} a message that rank {to} never receives."
        return f"{sends} Do both use the same neighbours and the same number of rounds?"
    if isinstance(error, simulate.NoSuchRankError):
        of_end = "What follows after the last rank, what comes before rank 0?"
        of_partner = "Two partners must name each other: is the partner's partner always the rank itself?"
        return f"A neighbour that does not exist: {text}. {of_end if case.collective.on_ring else of_partner}"
    if isinstance(error, simulate.SelfMessageError):
        itself = text.partition(":")[0]
        return f"A rank is its own neighbour: {itself}. When are there no messages to send at all?"
    of_length = "Chunks can have different lengths: is something with one chunk's length used for another chunk?"
    return f"{sentence(text)} {of_length}" if "shape" in text else first_sentence(error)


def of_form(run: Attempt) -> str | None:
    """What is wrong with the type and the shape of what the ranks return; None if nothing is."""
    for rank, (result, expected) in enumerate(zip(run.results, run.expected, strict=True)):
        returns = f"Rank {rank} returns"
        if isinstance(result, (list, tuple)):
            return f"{returns} a list of {len(result)} things: one array is needed, so put the chunks together."
        if kind(result) != "numbers":
            return f"{returns} no array of numbers; one of shape {expected.shape} is needed. Does it reach a `return`?"
        if result.shape == expected.shape:
            continue
        if run.case.collective.kind == "reduce_scatter" and result.size == run.case.length:
            return f"{returns} the whole array; only its own chunk of the sum is needed."
        if run.case.collective.kind == "all_reduce" and result.size < run.case.length:
            return f"{returns} {result.size} of {run.case.length} elements; the whole sum is needed."
        return f"{returns} an array of shape {result.shape}; {expected.shape} is needed."
    return None


def of_divisor(run: Attempt) -> str | None:
    """Whether the results are the right ones divided by a number."""
    right, found = (np.concatenate([np.ravel(each) for each in of_ranks]) for of_ranks in (run.expected, run.results))
    divisors = {round(float(one) / float(other), 6) if other else 0 for one, other in zip(right, found, strict=True)}
    caller = "The collective gives the sum; if a mean is needed, the caller divides."
    is_mean = len(divisors) == 1 and min(divisors) > 1
    return f"Your result is the right one divided by {min(divisors):g}. {caller}" if is_mean else None


def of_mixture(run: Attempt) -> str | None:
    """A sum of elements that do not belong together, or an element twice."""
    for rank, position, shares in run.elements():
        result = f"In the result of rank {rank}, "
        if run.case.collective.kind == "all_gather" and shares.total() > 1:
            added = f"Rank {rank} has the sum of chunks of {in_words(ranks_in(shares))}."
            return f"{added} An all-gather adds nothing: chunks are put side by side."
        for (source, _), count in sorted(shares.items()):
            if count > 1:
                times = "twice" if count == 2 else f"{count} times"
                return f"{result}the share of rank {source} is in element {position} {times}."
        if len(mixed := sorted({position for _, position in shares})) > 1:
            unlike = f"is a sum of unlike elements ({mixed}): a chunk was added to another one."
            return f"{result}element {position} {unlike}"
    return None


def of_lack(run: Attempt) -> str:
    """The first element that lacks shares, or holds another element."""
    for rank, position, shares in run.elements():
        result = f"In the result of rank {rank}, element {position} holds"
        others = [other for _, other in shares if other != position]
        if others and run.case.collective.kind == "all_reduce":
            replaced = "a chunk that arrived replaced another one. Which chunk does the neighbour send?"
            return f"{result} element {others[0]}: {replaced}"
        if len(ranks := ranks_in(shares)) < run.case.size and run.case.collective.kind != "all_gather":
            return f"{result} only the share of {in_words(ranks)}." if ranks else f"{result} nothing."
    return "Some chunk is in the wrong place."


def of_sums(case: Case, run: Attempt) -> str:
    """What is wrong with the results of a run."""
    if run.error is not None:
        return of_error(case, run.error)
    if equal(run.results, run.expected):
        return (
            f"with {case} no rank sends more than {run.bytes_sent} bytes, and no program can do it with less than "
            f"{case.least_bytes}: what a rank needs from others must come in messages."
        )
    if text := of_form(run) or of_divisor(run):
        return text
    if not case.owners:
        return "The sums are wrong for other numbers than those of the first cases."
    if any(not shares and np.ravel(run.results[rank])[at] != 0 for rank, at, shares in run.elements()):
        return "Some element is not a sum of the inputs: is anything done to the numbers besides adding?"
    needed = int(case.collective.cost(case.size, 0).steps)
    if not (text := of_mixture(run)) and run.steps < needed:
        return (
            f"On {case.size} ranks there were {run.steps} rounds of messages; a chunk that meets every rank needs "
            f"{needed}. A round is missing."
        )
    held = run.read(run.results[0])
    if not text and case.size > 1 and (0, 0) in held[0] and all(ranks_in(shares) == [0] for shares in held):
        return "What rank 0 returns holds only its own share. Do you return the array that you have added to?"
    asked = " Which chunk is finished on this rank, and which do you return?"
    return text or of_lack(run) + asked * (case.collective.kind == "reduce_scatter")


def of_waste(run: Attempt) -> str:
    """Why there are more steps and bytes than must be, messages off the ring, or a changed array."""
    case, size, texts = run.case, run.case.size, []
    needed, allowed = case.collective.most_steps(size), case.most_bytes
    if run.steps > needed:
        received = np.bincount([int(send.partner or 0) for send in run.sends], minlength=size)
        if size > 2 and received[0] >= size - 1 and received[0] > 2 * max(received[1:]) - 1:
            why = (
                "Every message comes from or goes to rank 0, which takes them one after another: use all links at once."
            )
        elif run.steps == needed + 1:
            why = "That is one round too many: what does the last one bring?"
        elif case.collective.on_ring:
            why = "Some ranks wait while others send: in each round every rank can send and receive at the same time."
        else:
            why = "Each exchange must halve the remaining work: after how many halvings is one part left per rank?"
        texts.append(f"on {size} ranks it takes {run.steps} steps, and {needed} are enough. {why}")
    if run.bytes_sent > allowed:
        why = "Some chunk travels further, or more often, than it must."
        if any(send.bytes >= case.length * ELEMENT > ELEMENT for send in run.sends):
            why = "Messages hold the whole array: how much of it does the receiver need?"
        but = "But with" if texts else "with"
        texts.append(f"{but} {case} a rank sends {run.bytes_sent} bytes, and {allowed} are enough. {why}")
    if not texts and (partners := run.partners()):
        rank = max(partners, key=lambda rank: len(partners[rank]))
        names = " and ".join(f"rank {partner}" for partner in partners[rank])
        return (
            f"it is no ring: with {size} ranks, rank {rank} sends to {names}. On a ring a rank sends to one neighbour "
            "only, and all ranks send in the same direction. How can a chunk reach a rank that is not a neighbour?"
        )
    return " ".join(texts) or (
        "the messages are as they should be, but the array that a rank was given is changed: the caller's gradient is "
        "overwritten. On what do you work?"
    )


def explained(case: Case, seen: Attempt | Waste) -> str:
    """What is wrong, where no mistake is recognised."""
    return of_waste(seen.run) if isinstance(seen, Waste) else of_sums(case, seen)


def then(question: str, described: Callable[[Attempt], str | None] = of_mixture) -> Callable[[Case, Attempt], str]:
    """A hint for wrong sums: what is seen in them, then a question."""
    return lambda case, run: f"{described(run) or of_lack(run)} {question}"


def judge(collective: Collective, mistakes: Sequence[Mistake]) -> ByPrograms:
    """The judge of an exercise."""
    is_ring = collective.on_ring
    parts = RING_PARTS if is_ring else (*RING_PARTS, *OTHERS)
    return ByPrograms(
        collective.program,
        partial(cases, collective),
        said=lambda case: f"with {case}",
        parts=parts,
        split=split,
        after=AFTER if is_ring else AFTER_OTHERS,
        weights=None if is_ring else dict.fromkeys(RING_PARTS, 3) | dict(zip(OTHERS, (2, 1, 1), strict=True)),
        otherwise=explained,
        mistakes=mistakes,
        observe=observe,
        draw=lambda case, run, every: partial(drawn, run) if case.owners else None,
        praise=lambda cases: f"{len(cases)} runs on 1 to {max(case.size for case in cases)} ranks are right.",
    )


def drawn(run: Attempt) -> Picture:
    """The steps of a run whose sums can be read."""
    from distlab.draw import Trace  # here, since it needs matplotlib
    from distlab.draw.collective_tasks import task

    def shown(array: Array | None) -> Array:
        read = run.read(array)
        shown = np.empty(len(read), object)
        shown[:] = [simulate.Contributions(shares) if shares else None for shares in read]
        return shown

    contents = {
        event.operation: Content(shown(event.content), shown(event.buffer), event.position)
        for event in run.events
        if event.kind in ("send", "reduce") and event.content is not None and event.position is not None
    }
    is_sum = all(kind(one) == "numbers" and np.ndim(one) == 1 and np.all(one == np.floor(one)) for one in run.results)
    results = [shown(result) for result in run.results] if is_sum and not run.error else None  # a mean says nothing
    what = task(run.case.collective.kind, run.case.size, run.case.length)
    trace = Trace(what, Events(lambda: run.events.columns, contents), results, run.error)
    description = trace.describe()[: 200 * MOST_STEPS]
    return picture(lambda: trace.strip(range(min(trace.last, MOST_STEPS) + 1)), description)


# The mistakes --------------------------------------------------------------------------------------------------------


def ring(
    sent: int = -1,
    grown: int = -2,
    gathered: tuple[int, int] | None = None,
    less: tuple[int, int] = (1, 1),
    way: int = 1,
    messages: int = 1,
    fresh: bool = False,
    adds: bool = False,
    writes: bool = True,
    given: Callable[[Rank, Array, list[Array]], Any] = lambda rank, total, chunks: chunks[rank.index],
) -> Program:
    """A reduce-scatter, and an all-gather if `gathered` is there.

    sent, grown, gathered: the chunks that go out and that change in step 0, counted from the rank's own.
    less: by how many rounds each half has fewer than there are ranks.  way: 1 to the right; messages: −1 the other way.
    fresh: what is sent is never what was added up.  adds, writes: what the second half does with a chunk.
    """

    async def program(rank: Rank, array: Array) -> Any:
        total, size = array.copy(), rank.size
        chunks, first = np.array_split(total, size), np.array_split(array, size)
        to, source = (rank.index + way * messages) % size, (rank.index - way * messages) % size
        for step in range(size - less[0]):
            index = rank.index - way * step
            outgoing = (first if fresh else chunks)[(index + way * sent) % size]
            await rank.reduce(chunks[(index + way * grown) % size], await rank.exchange(to, outgoing, source))
        for step in range(size - less[1] if gathered else 0):
            index = rank.index - way * step
            outgoing, target = (chunks[(index + way * offset) % size] for offset in gathered or ())
            received = await rank.exchange(to, outgoing, source)
            if adds:
                await rank.reduce(target, received)
            elif writes:
                target[:] = received
        return given(rank, total, chunks)

    return program


CHOOSE = "Either another chunk must be finished here, or each chunk must start at another rank."
OFF_BY_ONE = then(
    "Write down, for two rounds and two neighbours, the index of the chunk that goes out and of the one that is added "
    "to; one of them is off by one."
)
OTHER_DIRECTION = then(
    "Your messages go to the left: rank 1 sends to rank 0. Which chunk arrives then, that of index + 1 or of index − "
    "1? The indices and the messages must go round in the same direction."
)
OWN_NUMBERS = then(
    "What a rank sends on must contain what it has received, and not only its own numbers: does adding change the "
    "chunk that goes out in the next round?",
    of_lack,
)


def finished(offset: int, way: int) -> Callable[[Case, Attempt], str]:
    """The hint for a chunk that is finished on another rank than the one that returns it."""
    return lambda case, run: (
        f"On rank 0 it is chunk {way * offset % case.size} that is finished, the sum of all ranks. The program returns "
        f"chunk 0, which holds less. {CHOOSE}"
    )


REDUCE_SCATTER_MISTAKES = [
    *(Mistake(OFF_BY_ONE, ring(sent, grown)) for sent in (-1, 0, -2) for grown in (-2, -1, 0) if grown != sent - 1),
    *(Mistake(OTHER_DIRECTION, ring(sent, sent - 1, messages=-1)) for sent in (-1, 0)),
    *(Mistake(finished(offset, way), ring(offset - 1, offset - 2, way=way)) for offset in (1, 2) for way in (1, -1)),
    Mistake(
        f"Rank 0 returns the finished sum of chunk 1, but needs chunk 0. {CHOOSE}",
        ring(0, -1, given=lambda rank, total, chunks: chunks[(rank.index + 1) % rank.size]),
    ),
    *(Mistake(OWN_NUMBERS, ring(fresh=True, way=way)) for way in (1, -1)),
    Mistake(explained, ring(less=(2, 1))),
    Mistake(explained, ring(0, -1, less=(0, 1))),
]


def gathering(own: bool = False, arrival: bool = False, more: int = 0) -> Program:
    """An all-gather: own, if only a rank's own chunk is sent; in the order of arrival; in more rounds."""

    async def program(rank: Rank, chunk: Array) -> Array:
        parts, came, size = [chunk] * rank.size, [chunk], rank.size
        for step in range(size - 1 + more if size > 1 else 0):
            outgoing = chunk if own else came[-1]
            came.append(await rank.exchange((rank.index + 1) % size, outgoing, (rank.index - 1) % size))
            parts[(rank.index - step - 1) % size] = came[-1]
        return np.concatenate(came if arrival else parts)

    return program


ALL_GATHER_MISTAKES = [
    Mistake(
        "Rank 0 has every chunk, but not in order of rank. After k rounds a chunk comes from the rank k places to the "
        "left. Where does it belong?",
        gathering(arrival=True),
    ),
    Mistake(
        "Rank 0 gets a chunk in every round, but always that of its neighbour. What does a rank send on in the second "
        "round?",
        gathering(own=True),
    ),
    Mistake(explained, gathering(more=-1)),
    Mistake(explained, gathering(more=1)),
]
UNFINISHED = then(
    "An unfinished chunk went out in the second half and replaced a better one. Which chunk is finished on rank 0 "
    "after the first half, and which one does it send first?",
    of_lack,
)
AGAIN = then("In the second half finished chunks go round: what happens there to the chunk that was there before?")
NOBODY_TOLD = then("Each rank has finished one chunk, and nobody has told the others.", of_lack)


def ring_mistakes(way: int) -> list[Mistake]:
    """Of an all-reduce, round to the right (1) or to the left (−1)."""
    of_both = partial(ring, 0, -1, way=way, given=lambda rank, total, chunks: total)
    return [
        Mistake(UNFINISHED, of_both((0, -1))),
        Mistake(AGAIN, of_both((1, 0), adds=True)),
        Mistake(NOBODY_TOLD, of_both()),
        Mistake(
            "The messages are right: each finished chunk reaches every rank. But the array that rank 0 returns does "
            "not hold them. Does what you do with a chunk that arrives change that array, or only a name or a list?",
            of_both((1, 0), writes=False),
        ),
        Mistake(explained, of_both((1, 1))),
        Mistake(explained, of_both((1, 0), less=(1, 2))),
    ]


def halving(
    lower: Callable[[int, int], bool] = lambda index, partner: index < partner,
    backwards: bool = True,
    adds: bool = False,
    guests: bool = True,
) -> Program:
    """Halving and doubling; guests: the ranks above the largest power of two give their array and get the sum."""

    async def among(rank: Any, total: Array) -> Array:
        low, high, distance, splits = 0, len(total), rank.size // 2, []
        while distance:
            partner, middle = rank.index ^ distance, (low + high) // 2
            mine, theirs = slice(low, middle), slice(middle, high)
            if not lower(rank.index, partner):
                mine, theirs = theirs, mine
            await rank.reduce(total[mine], await rank.exchange(partner, total[theirs], partner))
            splits.append((partner, mine, theirs))
            low, high, distance = mine.start, mine.stop, distance // 2
        for partner, mine, theirs in reversed(splits) if backwards else splits:
            total[theirs] = await rank.exchange(partner, total[mine], partner) + total[theirs] * adds
        return total

    async def program(rank: Rank, array: Array) -> Array:
        members = 1 << (rank.size.bit_length() - 1)
        guest, host = rank.index + members, rank.index - members
        if host >= 0:
            if guests:
                await rank.send(host, array)
            return await rank.receive(host) if guests else array
        has_guest = guests and guest < rank.size
        total = await among(GroupRank(rank, range(members)), array + (await rank.receive(guest) if has_guest else 0))
        if has_guest:
            await rank.send(guest, total)
        return total

    return program


def of_guests(case: Case, run: Attempt) -> str:
    """The hint for ranks that have no partner."""
    last = (1 << (case.size.bit_length() - 1)) - 1
    question = "Who adds the array of such a rank to the sum, and who sends it the sum?"
    return f"Ranks 0 to {last} exchange halves; {in_words(range(last + 1, case.size))} cannot. {question}"


HALVING_MISTAKES = [
    Mistake({OTHERS[0]: of_guests}, halving(guests=False)),
    Mistake(then("Is the half that arrives the half that you add to?"), halving(lambda index, partner: True)),
    Mistake(
        then(
            "Of two partners, one must own the lower half and the other the upper half, and on the way back each half "
            "must go to the partner it was split from, the last split first.",
            of_lack,
        ),
        halving(backwards=False),
    ),
    Mistake(then("When you double, finished halves replace unfinished ones."), halving(adds=True)),
    Mistake(explained, collectives.ring_all_reduce),
    Mistake(explained, collectives.recursive_doubling_all_reduce),
]

# The lab -------------------------------------------------------------------------------------------------------------


def target(name: str, sizes: Sequence[int] = (2, 3, 4, 8), length: int = 24) -> str:
    """A table of what a program of this lab has to reach, by the closed formula, for `length` elements of 8 bytes."""
    collective = COLLECTIVES[name]
    lines = [f"{length} elements of {ELEMENT} bytes", "ranks   steps at most   bytes sent by a rank at most"]
    for size in sizes:
        cost = collective.cost(size, length * ELEMENT)
        lines.append(f"{size:>5}{collective.most_steps(size):>16}{cost.largest_bytes_sent:>31.0f}")
    return "\n".join(lines)


MISTAKES = (REDUCE_SCATTER_MISTAKES, ALL_GATHER_MISTAKES, [*ring_mistakes(1), *ring_mistakes(-1)], HALVING_MISTAKES)
LAB = Lab(
    "06_collectives_and_ring_all_reduce",
    [
        Exercise(name, 4 if collective.on_ring else 8, judge(collective, mistakes))
        for (name, collective), mistakes in zip(COLLECTIVES.items(), MISTAKES, strict=True)
    ],
    solved_in=["distlab.collectives"],
    target=target,
)
