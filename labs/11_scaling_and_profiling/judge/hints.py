"""What lab 11 says about wrong answers; many follow a colon, after the number and the case."""

from distlab.labs.verdict import Hint


class Lab11Hint(Hint):
    """By exercise: the audit, the corrected claims, the two fits, the prediction."""

    # Audit: steps
    STEPS_ROUNDED_UP = "a batch that is not full is dropped, not made."
    PARTS_OF_STEPS = "a step cannot be made in part. Which whole number is it?"
    STEPS_OF_ONE_GPU = "these are the steps of one GPU. What does a step of all GPUs take in?"
    BRACKETS = "`a // b * c` is `(a // b) * c`: a step takes `batch * gpus` images."
    NONE_FOR_ZERO = "no step was made, so this is 0; only the efficiency has no value."
    # Audit: images
    WHOLE_DATA_SET = "that is the data set. Which part of it fills whole steps?"
    EACH_GPU_HAS_A_BATCH = "in a step each GPU takes a batch of its own."
    IMAGES_OF_ONE_GPU = "that is what one GPU alone would work on."
    DROPPED_IMAGES = "these are the dropped images."
    MORE_THAN_THE_DATA_SET = "the data set does not have that many images."
    # Audit: images per second
    RATE_OF_THE_TABLE = "that is the table's mistake: it divides the whole data set by the time of a part."
    RATE_OF_ONE_GPU = "that is the rate of one GPU; the rate of all GPUs together is asked for."
    RATE_TIMES_GPUS = "the images of a step already include those of all GPUs."
    SECONDS_PER_IMAGE = "these are seconds per image."
    # Audit: efficiency
    EFFICIENCY_OF_THE_TABLE = "that is what the table claims: it takes both epochs for equally many images."
    SPEED_UP = "that is the speed-up. What share of the ideal one is it?"
    ONE_GPU_DROPPED_TOO = "the run on one GPU dropped something too."
    MANY_GPUS_DROPPED_TOO = "the run on many GPUs dropped something too."
    PER_CENT = "a fraction is asked for, not per cent."
    RATIO_OF_EPOCHS = "that is how many times shorter the epoch is, whatever was done in it."
    EFFICIENCY_INVERTED = "the ratio is inverted: how much of the ideal is reached?"
    EMPTY_LOOP = "no step was made, so what was timed is an empty loop. How efficient is that?"
    AUDIT_RAISES = "with no step at all `audit` raises {kind}: {message}."
    AUDIT_OTHERWISE = "that is not right. Write down what one step takes in, and count the steps."

    # Corrected claims
    RAISES_WITHOUT_STEP = "no step is made, and `corrected` raises {kind}."
    NONE_WITH_STEPS = "this run made steps, so it has an efficiency."
    EFFICIENCY_WITHOUT_STEP = "how many steps did this run make, and what was timed?"
    CLAIM_ITSELF = "that is the claim. By how much was the numerator too large?"
    COMPARED_RUN_DROPPED_TOO = "the run on one GPU, which it is compared with, dropped something too."
    CLAIM_INVERTED = "the ratio is inverted: were fewer images processed than claimed, or more?"
    BOTH_INVERTED = "the ratio is inverted: which of the two runs dropped more?"
    ONLY_ONE_GPU_CORRECTED = "this corrects the run on one GPU; what about the other run?"
    DIVIDED_BY_GPUS = "an efficiency is already divided by the number of GPUs."
    TIMES_GPUS = "an efficiency is asked for, not a speed-up."

    # Amdahl's law
    NOT_TWO_SECONDS = "`amdahl` gives two numbers, the serial and the parallel seconds."
    OTHER_ORDER = "The two numbers are right, in the other order."
    SHARES = "These are shares of one rank's time; seconds are asked for."
    FIRST_IS_A_SHARE = "The first is a share of one rank's time; seconds are asked for."
    LINE_OVER_RANKS = "That is a line over the number of ranks p. In which function of p is the law a line?"
    ALL_PARALLEL = "The parallel part is the whole time on the fewest ranks: the serial part is in that too."
    LAST_IS_SERIAL = "The serial part is the time on the most ranks: some of the divided work is left in that."
    NEGATIVE_PART = "A part of {seconds:.3g} s is not possible: no work takes less than 0 seconds."
    OFF_ON_MOST_RANKS = (
        "With s = {serial:.4g} and w = {parallel:.4g} the law gives {predicted:.4g} s on {ranks} ranks, where "
        "{measured:.4g} s were measured."
    )
    RIGHT_FROM_ONE_RANK = "Right where the first time is that of one rank, and here it is not."
    RIGHT_SIDE_NOT_DIVIDED = (
        "The rows of A are divided by the times, and b is not. Each equation has two sides: what is its right side "
        "then?"
    )
    # Any fit of noisy times
    RIGHT_FOR_EXACT_TIMES = "Right for exact times, but not for noisy times:"
    NO_TWO_NUMBERS = "there are no two numbers."
    OTHER_WEIGHTS = (
        "the squared errors are weighted, but by {weights} instead of by 1/T². Which factor turns an error in seconds "
        "into a relative one?"
    )
    LONGEST_DECIDES = (
        "the longest times decide alone, since their errors are the largest in seconds. Which errors should count?"
    )
    TWO_TIMES_DECIDE = "two of the times decide, with all their noise, and the others are not used."
    ERRORS_TOO_LARGE = (
        "the sum of squared relative errors is {errors:.3g}, and {best:.3g} can be reached. What does your fit make as "
        "small as it can?"
    )

    # Latency and seconds per byte
    NOT_A_NETWORK = "`alpha_beta` gives two numbers, the latency and the seconds per byte."
    WHOLE_ALL_REDUCE = "that is the time of a whole all-reduce of an empty array, which has many messages."
    HALF_A_RING = "the data goes round the ring twice: once to add, once to gather."
    STEPS_ARE_RANKS = "the number of steps is not the number of ranks."
    UNIT = "seconds are asked for, not another unit."
    PER_BYTE_OF_ARRAY = "that is per byte of the array; per byte that a rank sends is asked for, and it sends more."
    WHOLE_ARRAYS = "a rank sends chunks, never the whole array."
    WHOLE_ARRAY_PER_STEP = "in each step a rank sends one chunk, not the whole array."
    BANDWIDTH = "that is the bandwidth, bytes per second."
    NETWORK_OTHERWISE = "that is not right. How many messages follow one another, and of what size is each?"

    # Prediction
    NOT_ONE_NUMBER = "`predicted` gives one number, the seconds of a step."
    COMPUTING_ALONE = "that is the computing alone: when are the gradients added up?"
    ALL_REDUCE_ALONE = "that is the all-reduce alone."
    NO_SERIAL_PART = "the serial part is missing: more ranks do not shorten it."
    SERIAL_PART_DIVIDED = "the serial part is divided too, and more ranks do not shorten it."
    COMPUTING_OF_ONE_RANK = "the computing is still that of one rank."
    MEASURED_ALL_REDUCE = (
        "the all-reduce is still that of the ranks it was measured on. What grows with the number of ranks?"
    )
    ALL_REDUCE_IN_PROPORTION = "N times the ranks do not make an all-reduce N times as long."
    ALL_REDUCE_SHORTER = "more ranks do not shorten an all-reduce: how many bytes does each send?"
    STEP_DIVIDED = "all ranks work on the step at the same time; it is not divided again."
    ALL_REDUCE_DIVIDED = "each rank sends nearly twice the gradient, and that is not divided."
    NO_LATENCY = "the bytes are counted, and no message has a latency. How many messages follow one another?"
    LATENCY_ALONE = "the messages have their latency, and no time for their bytes."
    SINGLE_MESSAGE = "an all-reduce is more than one message."
    OVERLAPPED = "the task says that nothing overlaps: what follows what?"
    NOISE_MOVES_COMPUTING = "{noise:.0%} of noise moves the computing's part far: see exercise 3."
    NOISE_MOVES_ALL_REDUCE = "{noise:.0%} of noise moves the all-reduce's part far: see exercise 4."
    NOISE_MOVES_PREDICTION = "{noise:.0%} of noise in them moves the prediction far: see exercises 3 and 4."
    PREDICTION_OTHERWISE = "that is not right. Print what the computing and the all-reduce take on that many ranks."
