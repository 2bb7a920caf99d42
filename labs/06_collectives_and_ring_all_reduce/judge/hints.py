"""The hints of lab 06; none says what to write instead. `diagnosis`, `wrong_sums` and `lab` choose among them."""

from distlab.labs.verdict import Advice, AnyHint, Hint


class Lab06Hint(Hint):
    """By id, what is said about a rank program."""

    # The run could not go on.
    RUN_ENDED = "{error}"
    NEVER_RECEIVED = (
        "Rank {source} sends rank {to} a message that rank {to} never receives. Do both use the same neighbours and "
        "the same number of rounds?"
    )
    NO_SUCH_NEIGHBOUR = (
        "A neighbour that does not exist: {error}. What follows after the last rank, what comes before rank 0?"
    )
    NO_SUCH_PARTNER = (
        "A neighbour that does not exist: {error}. Two partners must name each other: is the partner's partner "
        "always the rank itself?"
    )
    OWN_NEIGHBOUR = "A rank is its own neighbour: {error}. When are there no messages to send at all?"
    ANOTHER_CHUNK_ARRIVES = (
        "{error} The chunk that arrives is not the one that it is added to: compare the index of what the left "
        "neighbour sends with the index of what you add to."
    )
    LENGTH_OF_ANOTHER_CHUNK = (
        "{error} Chunks can have different lengths: is something with one chunk's length used for another chunk?"
    )
    EVERYBODY_RECEIVES_FIRST = (
        "Deadlock: every rank waits for a message, and nobody has sent one. Which operation does each rank begin with, "
        "and can it end before another rank has gone on?"
    )
    WRONG_NEIGHBOUR = (
        "Deadlock with a wrong neighbour: rank {rank} waits for rank {source}, while rank {sender} has sent to rank "
        "{to}, which does not ask for it. If everybody sends to the right, from where do messages come?"
    )
    MORE_RECEIVES_THAN_SENDS = (
        "Deadlock: rank {rank} waits for rank {source}, but a rank that others wait for has finished. Some rank "
        "receives in more rounds than its neighbour sends in."
    )
    CIRCLE = "Deadlock: rank {rank} waits for rank {source}, and the waiting goes round in a circle. Who sends first?"

    # What a rank returns has a wrong form.
    RETURNS_NOTHING = "Rank {rank} returns None, other ranks do not: does every rank reach a `return`?"
    RETURNS_A_LIST = "Rank {rank} returns a list of {count} things: one array is needed, so put the chunks together."
    RETURNS_A_NUMBER = "Rank {rank} returns a single number; an array of shape {shape} is needed."
    RETURNS_NO_NUMBERS = "Rank {rank} returns an array of {dtype}, not of numbers like those in its input."
    RETURNS_THE_WHOLE_ARRAY = "Rank {rank} returns the whole array; only its own chunk of the sum is needed."
    RETURNS_A_PART = "Rank {rank} returns {count} of {length} elements; the whole sum is needed."
    RETURNS_ONE_CHUNK = "Rank {rank} returns one chunk; the chunks of all ranks are needed, one behind the other."
    RETURNS_ANOTHER_SHAPE = "Rank {rank} returns an array of shape {shape}; {expected} is needed."

    # The numbers are wrong.
    DIVIDED = (
        "Your result is the right one divided by {divisor:g}. The collective gives the sum; if a mean is needed, the "
        "caller divides."
    )
    DIVIDED_AND_ROUNDED = (
        "Your result is the right one divided by the number of ranks and rounded. The collective gives the sum."
    )
    WRONG_FOR_SOME_NUMBERS = "The sums are wrong for other numbers than those of the first cases."
    NOT_A_SUM = "Some element is not a sum of the inputs: is anything done to the numbers besides adding?"

    # A share is in a sum twice, or in the wrong element.
    SHARE_TWICE = "In the result of rank {rank}, the share of rank {source} is in element {position} {times}."
    SECOND_HALF_ADDS = (
        "In the second half finished chunks go round: what happens there to the chunk that was there before?"
    )
    DOUBLING_ADDS = "When you double, finished halves replace unfinished ones."
    UNLIKE_IN_RESULT = (
        "In the result of rank {rank}, element {position} is a sum of unlike elements ({positions}): a chunk was added "
        "to another one."
    )
    UNLIKE_SENT = "Rank {rank} sends a sum of unlike elements ({positions}): a chunk was added to another one."
    UNLIKE_ADDED = "Rank {rank} makes a sum of unlike elements ({positions}): a chunk was added to another one."
    OFF_BY_ONE = (
        "Write down, for two rounds and two neighbours, the index of the chunk that goes out and of the one that is "
        "added to; one of them is off by one."
    )
    OTHER_DIRECTION = (
        "Your messages go to the left: rank 1 sends to rank 0. Which chunk arrives then, that of index + 1 or of "
        "index − 1? The indices and the messages must go round in the same direction."
    )
    ANOTHER_HALF = "Is the half that arrives the half that you add to?"
    PUT_ELSEWHERE = (
        "In the result of rank {rank}, element {position} holds element {source}: a chunk that arrived replaced "
        "another one. Which chunk does the neighbour send?"
    )
    WRONG_PLACE = "Some chunk is in the wrong place."

    # A share is missing.
    ONLY_SOME_SHARES = "In the result of rank {rank}, element {position} holds only the share of {ranks}."
    NO_SHARES = "In the result of rank {rank}, element {position} holds nothing."
    OWN_SHARE_ONLY = (
        "What rank {rank} returns holds only its own share. Do you return the array that you have added to?"
    )
    SENDS_OWN_NUMBERS = (
        "What a rank sends on must contain what it has received, and not only its own numbers: does adding change the "
        "chunk that goes out in the next round?"
    )
    ROUND_MISSING = (
        "On {size} ranks there were {steps} rounds of messages; a chunk that meets every rank needs {needed}. A round "
        "is missing."
    )
    ANOTHER_CHUNK_IS_FINISHED = (
        "Rank {rank} returns the finished sum of chunk {chunk}, but needs chunk {rank}. Either another chunk must be "
        "finished here, or each chunk must start at another rank."
    )
    FINISHED_CHUNK = (
        "On rank {rank} it is chunk {chunk} that is finished, the sum of all ranks. The program returns chunk "
        "{returned}, which holds less. Either another chunk must be finished here, or each chunk must start at "
        "another rank."
    )
    FOLLOW_ONE_CHUNK = (
        "Follow one chunk round the ring: at which rank does it begin, where does it end, and is that the chunk that "
        "this rank returns?"
    )
    SECOND_HALF_MISSING = "Each rank has finished one chunk, and nobody has told the others."
    UNFINISHED_CHUNK_SENT = (
        "An unfinished chunk went out in the second half and replaced a better one. Which chunk is finished on rank 0 "
        "after the first half, and which one does it send first?"
    )
    RESULT_NOT_WRITTEN = (
        "The messages are right: each finished chunk reaches every rank. But the array that rank {rank} returns does "
        "not hold them. Does what you do with a chunk that arrives change that array, or only a name or a list?"
    )
    EXTRA_RANKS = (
        "Ranks 0 to {last} exchange halves; {ranks} cannot. Who adds the array of such a rank to the sum, and who "
        "sends it the sum?"
    )
    ORDER_OF_HALVES = (
        "Of two partners, one must own the lower half and the other the upper half, and on the way back each half "
        "must go to the partner it was split from, the last split first."
    )

    # All-gather
    GATHER_ADDS = (
        "Rank {rank} has the sum of chunks of {ranks}. An all-gather adds nothing: chunks are put side by side."
    )
    ORDER_OF_ARRIVAL = (
        "Rank {rank} has every chunk, but not in order of rank. After k rounds a chunk comes from the rank k places "
        "to the left. Where does it belong?"
    )
    ONE_SOURCE = (
        "Rank {rank} gets a chunk in every round, but always that of rank {source}. What does a rank send on in the "
        "second round?"
    )
    CHUNKS_MISSING = "Rank {rank} has only the chunks of {ranks}, although there were enough rounds."

    # Steps, bytes, and the caller's array
    RESULT_IS_RIGHT = "The result is right."
    TOO_MANY_STEPS = "But on {size} ranks it takes {steps} steps, and {needed} are enough."
    THROUGH_RANK_0 = (
        "Every message comes from or goes to rank 0, which takes them one after another: use all links at once."
    )
    ONE_ROUND_TOO_MANY = "That is one round too many: what does the last one bring?"
    DOES_NOT_HALVE = "Each exchange must halve the remaining work: after how many halvings is one part left per rank?"
    SOME_RANKS_WAIT = (
        "Some ranks wait while others send: in each round every rank can send and receive at the same time."
    )
    NOT_A_RING = (
        "But it is no ring: with {size} ranks, rank {rank} sends to {partners}. On a ring a rank sends to one "
        "neighbour only, and all ranks send in the same direction. How can a chunk reach a rank that is not a "
        "neighbour?"
    )
    TOO_LITTLE_IS_SENT = (
        "But with {run} no rank sends more than {sent} bytes, and no program can do it with less than {least}: what a "
        "rank needs from others must come in messages."
    )
    TOO_MANY_BYTES = "But with {run} a rank sends {sent} bytes, and {needed} are enough."
    SENDS_THE_WHOLE_ARRAY = "Messages hold the whole array: how much of it does the receiver need?"
    LONG_WAY = "Some chunk travels further, or more often, than it must."
    INPUT_CHANGED = (
        "Result, steps and bytes are right, but the array that a rank was given is changed: the caller's gradient is "
        "overwritten. On what do you work?"
    )

    # Where it is wrong, when something is right
    ONLY_ON_ONE_RANK = "Right on several ranks, wrong on one ({run})."
    UNEQUAL_CHUNKS = "Right as long as all chunks have one length; wrong with {run}."
    LATER_RUN = "Right on {sizes} ranks; wrong with {run}."
    OTHER_NUMBERS_OF_RANKS = "Right for 2, 4, 8 … ranks. For other numbers:"


def joined(*hints: AnyHint) -> Advice:
    """One advice that says all of them."""
    advice = [Advice.of(hint) for hint in hints]
    return Advice(" ".join(part.text for part in advice), tuple(hint for part in advice for hint in part.hints))
