"""What lab 04 says about wrong answers; most follow the name of a part and a case."""

from distlab.labs.verdict import Hint


class Lab04Hint(Hint):
    """By exercise: factors, the replicas' losses, the penalty, accumulated gradients, masks."""

    # Factors
    UPSIDE_DOWN = "this is the factor upside down: is the gradient too large or too small?"
    AS_IF_RIGHT = "that says the loop is right. What does it divide by in all, and what should it divide by?"
    SUMMED_MEANS = "each replica's mean has its own divisor already. How many of these means are added?"
    AVERAGED_MEANS = "the replicas' means are averaged, not added. What is the mean of equally large means?"
    SUMS_NEED_ALL = "nothing divides at all here. How many images are added up?"
    SUMS_AVERAGED = "the sums are divided by one number only, the replicas. What remains of the global batch?"
    DIVIDED_TWICE = "the loss is divided by the global batch. By what does the average divide once more?"
    MICRO_BATCHES_ADDED = "each micro-batch gives a complete mean. How many of them are added before the update?"
    ONE_MICRO_BATCH = "this loop has one micro-batch per update. For which loop alone does `micro_batches` count?"
    FACTOR_OTHERWISE = (
        "try it by hand: {replicas} replicas with {images} images each, and every image has the gradient 1, so the "
        "mean is 1. What reaches the update?"
    )
    MICRO_BATCHES_OTHERWISE = (
        "try it by hand: {micro_batches} micro-batches, and every image has the gradient 1, so the mean is 1. What "
        "does each micro-batch add before the update?"
    )
    INTEGER_DIVISION = "this is 0. Is it an integer division, as in `1 // 2`? The gradient is not gone, only too small."
    RIGHT_BY_CHANCE = "right for the example only;"
    # What is wrong with a list of values
    NO_LIST = "`{function}` must give a list with {count} numbers, one for each replica; yours gives {got}."
    NOT_A_NUMBER = "replica {replica} gets nan: the mean of nothing. What does it add to the global sum?"
    NAN_WITH_DATA = "replica {replica} gets {value}, although it has {count} {things}. Do you divide by 0?"
    ANOTHER_ORDER = "these are the right numbers in another order. Keep the order of the replicas."
    # Losses of replicas
    OWN_MEAN = "each replica has the mean of its own examples. The strategy adds: what is the sum of {count} means?"
    MEAN_OF_MEANS = "this is the mean of means, in which an example of a small replica counts more. Is that the mean?"
    NOT_DIVIDED = "this is a sum: nothing is divided yet."
    FULL_BATCH_ASSUMED = "this divides by {divisor}, the size of a full batch. How many examples are there this time?"
    DIVIDED_BY_ONE_REPLICA = "this divides by the examples of one replica. Whose examples are in the mean?"
    DIVIDED_BY_REPLICAS = "this divides by the number of replicas only. How many examples does each of them add up?"
    DIVIDED_AGAIN = "this divides by all examples, and then by the {count} replicas again. The strategy adds."
    ALL_THE_SAME = "each replica has the global mean, so the sum is {count} times too large."
    SHARED_OUT = "the sum is right, but a replica knows its own examples only, and its gradient comes from them."
    LOSS_DIVISOR = "each replica's sum is right, but divided by {divisor:.6g}. How many examples are there in all?"
    LOSS_OTHERWISE = "the sum over the replicas is {total:.6g}, and the mean over all examples {mean:.6g}."
    # Penalty
    EXERCISE_2_FIRST = "`replica_losses` gives None: write exercise 2 first."
    LOSSES_MISSING = "only the penalty is in it. Where are the losses?"
    PENALTY_ON_EACH = "each replica adds the whole penalty. How often is it in the sum?"
    PENALTY_FORGOTTEN = "the penalty is missing."
    PENALTY_BY_EXAMPLES = (
        "the penalty is divided by the examples. It does not depend on them: how many replicas add it?"
    )
    PENALTY_BY_OWN_EXAMPLES = (
        "each replica divides the penalty by its own examples. It does not depend on them: how many replicas add it?"
    )
    PENALTY_ON_ONE = "only one replica adds the penalty. All replicas run the same code: what can each of them add?"
    PENALTY_NOT_ON_EMPTY = "a replica without examples adds no penalty here. Does the penalty depend on examples?"
    PENALTY_UNEVEN = (
        "the penalty is in the sum once, but the replicas add different parts of it. All run the same code: what can "
        "each add?"
    )
    PENALTY_SUBTRACTED = "the penalty is subtracted. Is it a part of the loss to minimise, or a bonus?"
    PENALTY_TIMES_LOSS = "the penalty is multiplied by the losses. Does it depend on them?"
    PENALTY_SUM = (
        "the losses are right, but all replicas together add {total:.6g} as the penalty, and should add {penalty:.6g}."
    )
    PENALTY_PARTS = "the sum is right, but the replicas' parts of it are not. What does each replica know?"
    PENALTY_OTHERWISE = (
        "the sum over the replicas is {total:.6g}; the mean {mean:.6g} and the penalty {penalty:.6g} give {right:.6g}. "
        "Is the check of exercise 2 right?"
    )
    # Accumulation
    NO_GRADIENT = "`accumulated` must give an array with {count} numbers, one for each parameter; yours gives {got}."
    NAN_GRADIENT = "this is nan. A micro-batch without images has nan as its mean, and 0 · nan is nan."
    NAN_WITHOUT_EMPTY = "this is not finite, although each micro-batch has images. Do you divide by 0?"
    MEAN_OF_ALL_MEANS = "this is the plain mean of the means. Should {smallest} count as much as {largest}?"
    MICRO_BATCHES_SUMMED = "the micro-batches are added, and nothing divides by their number."
    MEANS_ADDED = (
        "the means of micro-batches are added as they are, and nothing divides by all images. Should the mean of "
        "{smallest} count as much as that of {largest}?"
    )
    WEIGHTED_PER_RANK = (
        "it is right within each rank, but then the ranks count equally. Do they have equally many images?"
    )
    WEIGHTED_PER_STEP = "the ranks count rightly within each micro-batch, but then these count equally."
    WEIGHTED_BETWEEN_RANKS = (
        "each rank counts by its images, but within a rank each micro-batch counts equally. Do they have equally many?"
    )
    GRADIENTS_NOT_DIVIDED = "these are sums over images. By how many images in all must they be divided?"
    FULL_MICRO_BATCHES = "this divides as if every micro-batch were full. How many images are there?"
    DIVIDED_BY_MICRO_BATCHES = (
        "these are sums over images, divided by {count} micro-batches. How many images are there?"
    )
    DIVIDED_BY_ONE_RANK = (
        "this divides by the images of one rank, and adds up those of all {ranks} ranks. How many images are there?"
    )
    RANKS_ADDED = (
        "this divides by the images or the micro-batches of one rank, and adds up those of all {ranks} ranks. How "
        "many are there in all?"
    )
    DIVIDED_BY_RANKS_TOO = (
        "this divides by all {images} images, and then by the {ranks} ranks again. Whose images have you counted?"
    )
    MEANS_BY_COUNTS = "each mean is divided by its images. How does a mean become a sum again?"
    COUNTS_MIXED_UP = "the means are weighted, but with the counts of other micro-batches. Compare the two orders."
    IMAGES_MISSING = "only {used} of {images} images are in it. Which ranks, or which micro-batches, are missing?"
    LEFT_OUT_WITH_EMPTY = (
        "only {used} of {images} images are in it. What else do you leave out with the empty micro-batch?"
    )
    PARAMETERS_ORDER = "these are the right numbers in another order. Keep the order of the parameters."
    ACCUMULATED_DIVISOR = (
        "the sum over all images is right, but divided by {divisor:.6g}. How many images are there in all?"
    )
    ACCUMULATED_OTHERWISE = (
        "parameter {place} gets {number:.6g}, and {expected:.6g} is right. How much does one image count?"
    )
    # Masks
    PADDING_COUNTED = "this divides by all positions. How many of them are words?"
    MASKS_UNUSED = "the masks are not used at all."
    PADDING_ADDED = "the losses at padding are in it. What should become of them?"
    UPSIDE_DOWN_MASK = "this takes the losses at padding, and leaves the words out. What does a 1 in the mask mean?"
    BITS_TURNED = "`~` makes -1 and -2 of the integers 0 and 1. Which positions do you want to keep?"
    ROWS_PICKED = (
        "the masks are integers, and as an index they pick rows 0 and 1, not words. What would a comparison give?"
    )
    OWN_WORDS = "each replica divides by its own words, and the strategy adds. What is the sum of {count} means?"
    MEAN_OF_REPLICAS = "the replicas count equally here, however many words they have."
    SEQUENCE_MEANS = (
        "this is a mean of the sequences' means: a word in a short sequence counts more than one in a long one. How "
        "much should each word count?"
    )
    BY_SEQUENCES = "the words' losses are added, but divided by the {count} sequences. Over what is the mean?"
    WORDS_OF_ONE_REPLICA = (
        "this divides by {divisor}, as if each of the {replicas} replicas had {words} words. How many are there?"
    )
    MASKED_NOT_DIVIDED = "the padding is gone, but nothing is divided yet."
    ZEROS_LEFT_OUT = "a word whose loss is exactly 0 is not counted here. What says that it is a word?"
    MASKED_DIVISOR = "each replica's sum is right, but divided by {divisor:.6g}. How many words are there in all?"
    MASKED_OTHERWISE = "the sum over the replicas is {total:.6g}, and the mean over all words {mean:.6g}."
