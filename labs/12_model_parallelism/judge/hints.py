"""What lab 12 says about wrong answers."""

from distlab.labs.verdict import Hint


class Lab12Hint(Hint):
    """By exercise: schedules, the plan, split layers. No hint says what to write instead."""

    # Any schedule
    NO_SUCH_MICRO_BATCH = (
        "Stage {stage} does {name}, but the micro-batches are 0 to {last}. What if there are fewer of them than stages?"
    )
    COUNTED_FROM_ONE = "Stage {stage} does {name}, but the micro-batches are 0 to {last}. Which is the first one?"
    DONE_AGAIN = "Stage {stage} does {name} {count} times."
    NEVER_DONE = "Stage {stage} never does {name}: every stage works on every micro-batch, both ways."
    BACKWARD_BEFORE_FORWARD = (
        "Stage {stage} does {backward} before {forward}: a backward pass needs what the forward pass has kept."
    )
    DEADLOCK = "Deadlock: {waiting}. Which of these passes should not be next?"
    # The table
    TABLE_IS_NO_TEXT = "The table is one text with a line for each of the {stages} stages."
    LINES = "The table has {lines} lines; {stages} are asked for, one for each stage."
    NO_PASS = (
        "Stage {stage}, slot {slot}: `{word}` is neither one pass, such as F0 or B0, nor `..`. In a slot a stage does "
        "one pass."
    )
    SAME_SLOT = (
        "Stage {stage} and stage {before} do {name} in the same slot, {slot}. Stage {stage} needs what stage {before} "
        "has at the end of it."
    )
    FORWARD_TOO_EARLY = (
        "Stage {stage} does {name} in slot {slot}, stage {before} only in slot {needed}. Through which stage does a "
        "micro-batch go first?"
    )
    BACKWARD_TOO_EARLY = (
        "Stage {stage} does {name} in slot {slot}, stage {before} only in slot {needed}. Where is the loss computed, "
        "and which way do gradients go from there?"
    )
    TOO_MANY_SLOTS = "The table can be carried out, but it takes {slots} slots, and {fewest} are enough."
    LATER_THAN_POSSIBLE = (
        "The same order of passes needs {slots:g}: some pass could be further to the left, since all that it needs is "
        "there."
    )
    ONE_UNDER_WAY = "Only one micro-batch is under way at any time. What could stage 0 do while the others work on it?"
    FILLED_AGAIN = (
        "After {count} micro-batches the pipeline runs empty, and is filled a second time. How often must it be filled?"
    )
    KEPT_WAITING = (
        "The order keeps a stage waiting in the middle. Look for the first grey slot between two passes of a stage: "
        "which pass could the stage do there?"
    )
    # One forward, one backward
    NO_ORDER = 'The order of one stage is a list of texts such as ["F0", "F1", "B0", "B1"].'
    CARRIED_OUT = "The orders can be carried out."
    TOO_SLOW = "But {case} take {seconds:g} seconds, and {fewest:g} are enough."
    ONE_AFTER_THE_OTHER = (
        "Every stage finishes a micro-batch before it takes the next one. What could stage 0 do while the others work "
        "on micro-batch 0?"
    )
    TOO_FEW_AHEAD = (
        "Stage {stage} does {passes} and then waits for its first gradient. How long is the way of a micro-batch to "
        "the loss and back, and what can be done meanwhile?"
    )
    WAITS_IN_THE_MIDDLE = (
        "Stage {stage} waits at second {start:g}, in the middle of its work. Compare what its neighbours do there: who "
        "could have sent it something earlier?"
    )
    HOLDS_TOO_MUCH = "On {case} stage {stage} holds {micro_batches} at a time; it needs to hold only {allowed}."
    GPIPE = "All forward passes come first: that is GPipe. When could micro-batch 0 leave the memory?"
    SAME_ON_EVERY_STAGE = (
        "It is the same number on every stage. How many stages does a micro-batch still have before it?"
    )
    ONE_TOO_MANY_AHEAD = "There is one forward pass too many before a backward pass whose gradient is there already."
    GRADIENT_WAITS = "It does forward passes although a gradient is waiting for it. When can it first go backward?"

    # The number of micro-batches
    NO_COUNT = "a whole number of at least 1 is asked for."
    DOES_NOT_DIVIDE = "{count} micro-batches do not divide a batch of {batch} equally."
    DOES_NOT_FIT = (
        "with {count} micro-batches stage 0 holds {examples:g} examples at a time, and {fits} fit. How many "
        "micro-batches does it hold under 1F1B, and how large are they?"
    )
    SMALLEST_BUBBLE = (
        "the bubble is as small as it can be, and the time is not: what does every further micro-batch cost each stage?"
    )
    FEWEST_THAT_FIT = (
        "it fits, but a larger number is faster: the whole pipeline waits for the first, large micro-batch."
    )
    OTHERS_ARE_FASTER = (
        "{count} micro-batches take {seconds:.4g} s, and others that divide the batch and fit take less. Which did you "
        "compare?"
    )
    NO_BUBBLE = "that is the time without a bubble: when does the last stage begin?"
    ONE_TOO_LONG = "that is one micro-batch too long: how many stages are before the last one?"
    STAGES_IN_A_ROW = "stages work at the same time, not one after the other."
    FIXED_MISSING = "the fixed seconds of each micro-batch are missing."
    FIXED_ONCE = "every micro-batch takes the fixed seconds; they are counted once here."
    WHOLE_BATCH_EACH_TIME = "these seconds are of the whole batch; how many examples has a micro-batch?"
    SHARE_OF_IDEAL = "that is the bubble as a part of the time *without* it; a share of the whole time is asked for."
    SHARE_OF_WORK = "that is the share in which a stage works."
    STAGES_WAITED_FOR = "how many of the stages does the last one wait for before it can begin?"
    LENGTH_OF_THE_WHOLE = "add up again how long the whole takes, in micro-batches."
    PER_CENT = "a share is asked for, from 0 to 1, not per cent."
    BUBBLE_IN_SECONDS = "these are seconds; a share of the whole time is asked for."
    NOTHING_FITS = (
        "by your count no number of micro-batches fits, and one does. How many micro-batches does stage 0 hold at a "
        "time under 1F1B, however many there are?"
    )
    PLAN_OTHERWISE = "that is not right. Draw the time line of a few micro-batches and count."

    # Any split layer: errors
    NOT_THE_SAME_COLLECTIVES = (
        "Some ranks wait for others in vain, or send what nobody receives. Every rank must call the same collectives, "
        "in the same order."
    )
    NOT_AWAITED = "{error} A collective gives its result when it is awaited."
    ROWS_DO_NOT_FIT = (
        "`all_gather` puts the ranks' rows one below the other, and these arrays do not fit that way. What must be "
        "next to what?"
    )
    SHAPES_DIFFER = (
        "Arrays of different shapes cannot be added to each other. Look at the shapes on two ranks: do the same places "
        "belong to the same units?"
    )
    FACTORS_DO_NOT_FIT = "{error} Write the shapes of both factors next to it."
    # Any split layer: results
    NO_PAIR = "Every rank must return a pair: the outputs, and the gradient of the inputs."
    RANK_GIVES_NONE = "Rank {rank} returns None, or nothing for this: does every rank reach a `return`?"
    RANK_GIVES_NO_NUMBERS = "Rank {rank} returns no array of numbers; an array of shape {shape} is asked for."
    SWAPPED_PAIR = "The pair is the other way round: first the outputs, then the gradient of the inputs."
    SHAPE = "The shape is {shape}, and {expected} is asked for: examples × units."
    ONLY_RANK_0 = "Only rank 0 returns what is asked for. Which rank needs it?"
    NUMBERS_OTHERWISE = "The numbers are wrong. Try two ranks, two examples and two units by hand."
    BIAS_MISSING = "The bias is missing."
    NO_RELU_HERE = "There is no ReLU in this layer."
    # By columns
    OWN_COLUMNS = "Each rank returns the columns of its own units only; the outputs of all units are asked for."
    GATHERED_ROWS = (
        "The ranks' outputs are one below the other. They belong to the same examples and to different units: what is "
        "a row, and what is a column?"
    )
    ADDED_COLUMNS = (
        "This adds up columns of different ranks, which belong to different units. Which of the two collectives adds, "
        "and which puts together?"
    )
    TRANSPOSED = "The outputs are transposed: a row for each unit. A row for each example is asked for."
    PADDED = "On each rank only the columns of its own units are there; the others are still 0."
    WRONG_ORDER = "All columns are there, but not in the order of the ranks."
    # Sums
    PARTS_PUT_TOGETHER = (
        "The ranks' arrays are put together, but each has a part of *every* sum. What must happen to the parts of a "
        "sum?"
    )
    SOME_ROWS = "A rank returns some rows of the sum only; it is asked for all of them."
    OWN_PART = "Each rank returns its own part of the sums: it has some of the units, and a sum goes over all of them."
    BIAS_MANY_TIMES = "The bias is in the sum {ranks} times. How many ranks add it?"
    MEAN = "The sum is divided by {ranks}. The ranks have parts of one sum, not {ranks} estimates of it."
    # Two layers
    RELU_MISSING = "The ReLU is missing between the layers."
    RELU_AFTER_SUM = "The ReLU belongs between the layers, not after them."
    FIRST_BIAS_MISSING = "The first layer's bias is missing."
    GRADIENT_OF_HIDDEN = "That is a gradient of the hidden layer. One more product leads to the inputs."
    OWN_GRADIENT = "Each rank returns the part of its own units. On which units does an input act?"
    PAST_RELU = "The gradient goes past the ReLU. What does it do to units that were 0?"
    OWN_GRADIENT_PAST_RELU = "The gradient goes past the ReLU, and each rank returns the part of its own units only."
    TIMES_HIDDEN = "The gradient is multiplied by the hidden units. What is the derivative of a ReLU?"
    MEAN_OF_GRADIENTS = "The sum is divided by {ranks}, but the ranks have parts of one gradient."
    WHOLE_ADDED_UP = "It is {ranks} times the gradient: something that every rank has whole is added up."
    # Bytes
    TOO_MANY_BYTES = "With {case} a rank sends {sent} bytes, and {allowed} are enough."
    RESULT_RIGHT = "The result is right."
    HIDDEN_TRAVELS = "The hidden layer travels, too. Which units does a rank need for its own rows?"
    MORE_THAN_TWO_SUMS = "Two arrays must be added up over the ranks, one forward and one backward. What else travels?"
    WEIGHTS_TRAVEL = "The weights travel. What could travel instead?"
    ZEROS_ADDED = "An all-reduce adds up arrays that are mostly zeros: there is nothing to add here."
    WEIGHTS_AND_INPUTS_TRAVEL = (
        "Weights and inputs travel. What is left to do if every rank does its own part of each sum?"
    )
    WHOLE_ARRAYS_TRAVEL = "Whole arrays go from rank to rank. What does an all-reduce on a ring send?"
    BYTES_OTHERWISE = "What travels more often, or further, than it must?"
