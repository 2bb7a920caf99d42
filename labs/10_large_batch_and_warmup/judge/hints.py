"""What lab 10 says about wrong answers; most follow a colon, after the number and the case."""

from distlab.labs.verdict import Hint


class Lab10Hint(Hint):
    """By exercise: the plan, the warm-up, the noise scale."""

    # Per-replica batch
    ALL_THAT_FITS = "it fits, but the global batch would be {global_batch}. Is that worthwhile?"
    LIMIT_OF_ALL = "that is the limit of the global batch, for all ranks together."
    DIVIDED_BY_LOCAL_SIZE = "that is divided only among the ranks of one host."
    TOO_LARGE_FOR_MEMORY = "that is worthwhile, but does it fit into the memory of one device?"
    PARTS_OF_IMAGES = "images cannot be cut: which whole number is not above the limit?"
    BATCH_ROUNDED_UP = "that is rounded up, so that all ranks together are above the limit."
    MEMORY_DIVIDED = "the memory is that of one device, and nobody shares it."
    KNOWN_BATCH_KEPT = "the batch of one device is kept. How large may it be?"
    KNOWN_BATCH_DIVIDED = "that divides the old batch: a larger batch is asked for."
    FORGOTTEN_HOSTS = "all numbers are those of one host alone. How many ranks are there on all hosts?"
    # Global batch
    BATCH_OF_ONE_RANK = "that is what one rank gets. How many images does one update see?"
    BATCH_OF_ONE_HOST = "that is what one host gets, the local size instead of the world size."
    LIMIT_ITSELF = "the ranks cannot share this number evenly."
    BEYOND_LIMIT = "that is larger than what is worthwhile."
    ONE_RANK_PER_HOST = "each host has several ranks."
    # Steps per epoch
    STEPS_ROUNDED_UP = "what does not fill a global batch is dropped here."
    PARTS_OF_STEPS = "a step cannot be made in part. Which whole number is it?"
    EACH_RANK_SEES_ALL = "every rank would see every image, so this epoch is really several epochs."
    STEPS_OF_ONE_HOST = "the images are divided among all ranks, not among those of one host."
    STEPS_ON_ONE_DEVICE = "these are the steps of the training on one device."
    STEPS_DIVIDED = "every rank takes part in every step; the ranks do not divide the steps."
    # Learning rate
    TIMES_RANKS = (
        "that is the known rate times the ranks: right only if each rank has the known batch. What does it have?"
    )
    TIMES_LOCAL_SIZE = "that is the known rate times the local size. What do the other hosts do to the batch?"
    KNOWN_RATE_KEPT = "that is the rate of the small batch. There are fewer steps now, each the mean of more images."
    SQUARE_ROOT_RULE = "that is the square-root rule."
    RATIO_OF_ONE_RANK = "the ratio of the global batches is asked for."
    RATIO_OF_ONE_HOST = "the global batch is that of all hosts, not of one."
    RATE_INVERTED = "the ratio is inverted: with fewer steps, is each longer or shorter?"
    NOT_DIVIDED_BY_KNOWN_BATCH = "divide by the batch that the known rate is for."
    RATE_DIVIDED_BY_RANKS = "the all-reduce gives a mean already; nothing is divided again."
    PLAN_OTHERWISE = (
        "that is not right. Write the four numbers of the example in order; each follows from the one before it."
    )

    # Warm-up
    NO_NUMBER = "`warm_up` must return one number for each step, and does not for step {step}."
    STARTS_AT_ZERO = "nothing would be learned in this step. From which rate does the warm-up start?"
    FULL_AT_ONCE = "that is the full rate at once."
    INCREMENT_TOO_EARLY = "that is one increment too early. How many increments come before step 0?"
    INCREMENT_FROM_ZERO = "that is one increment from 0. From which rate does the warm-up start?"
    EPOCH_AT_ONCE = "that is the increment of a whole epoch at once."
    FLAT_EPOCH = "in this epoch the rate does not rise. It must rise in every step."
    CONSTANT = "that is a constant warm-up: the small rate, until it jumps."
    FULL_ALREADY = "that is the full rate already."
    BY_EPOCH = "the rate changes once per epoch, in jumps. It must rise in every step."
    STEPS_FOR_EPOCHS = "the warm-up is given in epochs, but the step is not."
    LINE_FROM_ZERO = "this line begins at 0. From which rate does the warm-up start?"
    INCREMENT_AHEAD = "the rate is one increment ahead in every step."
    INCREMENTS_TOO_LARGE = "these increments are too large: how many lie between step 0 and the end?"
    EQUAL_FACTORS = "the rate grows by equal factors; equal amounts are asked for."
    RISES_BY_FULL_RATE = "it rises by the full rate, and it has the first one already."
    ONE_EPOCH = "the warm-up takes one epoch here, not all of its epochs."
    ABOVE_FULL_RATE = "the rate continues to rise above the full rate."
    FALLS_BACK = "the warm-up is over, and the rate falls back."
    INCREMENT_MISSING = "one increment is still missing."
    FIRST_PLUS_FULL = "the first rate is added to the full one."
    RAISES_WITHOUT_WARM_UP = "with 0 epochs of warm-up `warm_up` raises {kind}."
    WRONG_WITHOUT_WARM_UP = "{rate} in step {step} with 0 epochs of warm-up: the full rate is due from step 0 on."
    NOT_ON_THE_LINE = (
        "that is not on the line. Draw the rate over the steps: where does the line begin, where does it end?"
    )

    # Noise scale
    GRADIENT_IS_NOISY = "the mean over the ranks is taken for the true gradient, but it is noisy itself."
    SQUARE_OF_ONE_RANK = "that is what one rank has, noise and all."
    GRADIENTS_SUMMED = "the ranks' gradients are added up, and the large batch's gradient is their mean."
    STEPS_AVERAGED_FIRST = (
        "the gradients of all steps are averaged first, but the true gradient changes from step to step."
    )
    NORM_NOT_SQUARED = "a squared norm is asked for, not a norm."
    SQUARE_AVERAGED = "a squared norm is a sum over the parameters, not a mean."
    SQUARES_EXCHANGED = "the two squares have changed places: which is of the larger batch?"
    VARIANCE_OF_A_RANK = "that is the variance of a rank's gradient. How does a single image's differ from it?"
    GLOBAL_BATCH_FOR_RANK = "the global batch is taken for that of a rank."
    SQUARE_IS_NO_NOISE = "the square of the gradient itself is counted as noise."
    TRACE_AVERAGED = "a trace is a sum over the parameters, not a mean."
    NEGATIVE_VARIANCE = "a variance is not negative: which of the two squares is larger?"
    SCALE_INVERTED = "the ratio is inverted: divide the noise by the gradient."
    MEAN_OF_RATIOS = "that is the mean of the steps' ratios, where one small denominator decides. Average first."
    MEDIAN_OF_RATIOS = "that is the median of the steps' ratios; the ratio of the averages is asked for."
    IN_RANK_BATCHES = "that is in batches of a rank; images are asked for."
    IN_GLOBAL_BATCHES = "that is in global batches; images are asked for."
    ROOT_OF_SCALE = "no root is needed: both numbers are squares."
    NO_ESTIMATE = (
        "the estimate of |G|² is not above 0: the noise hides the gradient. How large a batch would be needed?"
    )
    ESTIMATE_CUT = (
        "the estimate is not cut off at 0: a negative one says that the noise hides the gradient, and the noise scale "
        "looks at it."
    )
    DENOMINATOR_MISSING = (
        "that is the difference of the two squares. By how much does the variance of a mean differ for the two batches?"
    )
    NOISE_SCALE_OTHERWISE = "that is not right. Try the example by hand."
