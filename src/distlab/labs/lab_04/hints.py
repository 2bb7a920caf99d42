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
    FACTOR_OTHERWISE = "try 2 replicas with 3 images each, all with the same gradient: what reaches the update?"
    # What is wrong with a list of values
    NO_LIST = "`{function}` gives a list with one number for each of the {count} replicas."
    NOT_A_NUMBER = "replica {replica} gets nan: the mean of nothing. What does it add to the global sum?"
    ANOTHER_ORDER = "these are the right numbers in another order. Keep the order of the replicas."
    # Losses of replicas
    OWN_MEAN = "each replica has the mean of its own examples. The strategy adds: what is the sum of {count} means?"
    MEAN_OF_MEANS = "this is the mean of means, in which an example of a small replica counts more. Is that the mean?"
    NOT_DIVIDED = "this is a sum: nothing is divided yet."
    FULL_BATCH_ASSUMED = "this divides by {divisor}, the size of a full batch. How many examples are there this time?"
    DIVIDED_BY_ONE_REPLICA = "this divides by the examples of one replica. Whose examples are in the mean?"
    DIVIDED_BY_REPLICAS = "this divides by the number of replicas only. How many examples does each of them add up?"
    ALL_THE_SAME = "each replica has the global mean, so the sum is {count} times too large."
    SHARED_OUT = "the sum is right, but a replica knows its own examples only, and its gradient comes from them."
    LOSS_OTHERWISE = "the sum over the replicas is {total:.6g}, and the mean over all examples {mean:.6g}."
    # Penalty
    PENALTY_ON_EACH = "each replica adds the whole penalty. How often is it in the sum?"
    PENALTY_FORGOTTEN = "the penalty is missing."
    PENALTY_BY_EXAMPLES = (
        "the penalty is divided by the examples. It does not depend on them: how many replicas add it?"
    )
    PENALTY_ON_ONE = "only one replica adds the penalty. All replicas run the same code: what can each of them add?"
    PENALTY_NOT_ON_EMPTY = "a replica without examples adds no penalty here. Does the penalty depend on examples?"
    PENALTY_UNEVEN = (
        "the penalty is in the sum once, but the replicas add different parts of it. All run the same code: what can "
        "each add?"
    )
    PENALTY_SUBTRACTED = "the penalty is subtracted. Is it a part of the loss to minimise, or a bonus?"
    PENALTY_SUM = "the losses are right, but all replicas together add {total:.6g} as the penalty. Once would do."
    PENALTY_OTHERWISE = "without a penalty it must be what `replica_losses` gives; the penalty must be in the sum once."
    # Accumulation
    NO_GRADIENT = "`accumulated` gives an array with {count} numbers, one for each parameter."
    NAN_GRADIENT = "this is nan. A micro-batch without images has nan as its mean, and 0 · nan is nan."
    MEAN_OF_ALL_MEANS = "this is the plain mean of the means. Should 1 image count as much as {largest}?"
    MICRO_BATCHES_SUMMED = "the micro-batches are added, and nothing divides by their number."
    WEIGHTED_PER_RANK = (
        "it is right within each rank, but then the ranks count equally. Do they have equally many images?"
    )
    WEIGHTED_PER_STEP = "the ranks count rightly within each micro-batch, but then these count equally."
    GRADIENTS_NOT_DIVIDED = "these are sums over images. By how many images in all must they be divided?"
    FULL_MICRO_BATCHES = "this divides as if every micro-batch were full. How many images are there?"
    DIVIDED_BY_MICRO_BATCHES = (
        "these are sums over images, divided by {count} micro-batches. How many images are there?"
    )
    ACCUMULATED_OTHERWISE = (
        "parameter {place} gets {number:.6g}, and {expected:.6g} is right. How much does one image count?"
    )
    # Masks
    PADDING_COUNTED = "this divides by all positions. How many of them are words?"
    MASKS_UNUSED = "the masks are not used at all."
    PADDING_ADDED = "the losses at padding are in it. What should become of them?"
    OWN_WORDS = "each replica divides by its own words, and the strategy adds. What is the sum of {count} means?"
    MEAN_OF_REPLICAS = "the replicas count equally here, however many words they have."
    BY_SEQUENCES = "this divides by sequences, not by words: long ones would count more than their share."
    MASKED_NOT_DIVIDED = "the padding is gone, but nothing is divided yet."
    ZEROS_LEFT_OUT = "a word whose loss is exactly 0 is not counted here. What says that it is a word?"
    MASKED_OTHERWISE = "the sum over the replicas is {total:.6g}, and the mean over all words {mean:.6g}."
