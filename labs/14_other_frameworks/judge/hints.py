"""The hints of lab 14: `Lab14PuzzleHint` follows the name of a step, `Lab14Hint` is about all other exercises."""

from distlab.labs.verdict import Hint


class Lab14PuzzleHint(Hint):
    """By id, what is said about a program of the puzzle, after it ran on four ranks."""

    # 1 initialise
    NO_INIT = "no process knows the others: every call that needs them ends in an error. Which card lets them meet?"
    USED_BEFORE_INIT = "{card!r} needs the process group, which does not exist yet. What must come before it?"
    INIT_GUARDED = "a guard lets only some processes make this call, and they wait for the others. Who must make it?"
    INIT_IN_LOOP = "it is called a second time, and that is an error. How often do the processes have to meet?"

    # 2 pin the device
    PINNED_BY_RANK = "rank 2 is the first process of the second host of two GPUs. Is there a GPU 2?"
    NOT_PINNED = 'to every process of a host "cuda" means GPU 0. Which number differs between the processes of a host?'
    PINNED_LATE = "all networks are on GPU 0 of their host. Which line moved them there, and when was the GPU chosen?"

    # 3 scale the learning rate
    RATE_BY_LOCAL_SIZE = (
        "two hosts of two processes make one global batch of four parts. How many does 'rate by local size' count?"
    )
    RATE_NOT_SCALED = (
        "the global batch has grown with the ranks, and each step is as long as before. Which rule is that?"
    )
    RATE_BEFORE_OPTIONS = "there is no `rate` here yet: which line reads it?"
    RATE_LATE = "the optimizer still has the serial rate. When did it read `rate`?"

    # 4 average the gradients
    NOT_WRAPPED = "every rank applies its own gradients, and the models drift apart. What does `backward` have to know?"
    WRAPPED_BEFORE_NETWORK = "there is no `network` here yet: which line makes it?"
    WRAPPER_LOST = "the loop calls the bare network, so nothing is averaged. Which line gave `model` its last value?"
    WRAPPED_LATE = "steps were made without an average. Before which line must `model` be the wrapper?"
    WRAPPED_IN_LOOP = (
        "the network is wrapped again and again, and each time all weights are sent. How often is it needed?"
    )

    # 5 broadcast the weights
    BROADCAST_BY_HAND = "no line for this is needed. Which constructor sends the weights of rank 0 already?"
    BROADCAST_WITHOUT_WRAP = (
        "the card that step 4 lacks sends the weights of rank 0 too, so this one is not needed. Which card is it?"
    )
    STARTS_DIFFER = (
        "the ranks begin with different weights. Who sends those of rank 0, and before which line is it needed?"
    )

    # 6 checkpoint on rank 0
    ALL_WRITE = "all ranks write the same file at the same time. Who should?"
    ONE_PER_HOST_WRITES = (
        "every host has a process with this number, and they write to one folder. Who is there only once?"
    )
    SECOND_GUARD = "only rank 0 writes, but one of the two guards is not needed. Which one does it alone?"
    GUARDS_NOTHING = "a guard is the last line of the program, and guards nothing. Which line must not be run by all?"
    GUARDS_ANOTHER_LINE = "a guard is in front of {line!r}. Which line must not be run by all?"
    GUARDS_A_COLLECTIVE = (
        "a guard is in front of {line!r}, where rank 0 waits for all others. Which line must not be run by all?"
    )
    GUARDS_RESTORE = "a guard is in front of {line!r}. DDP sends the weights: who sends the optimizer's momentum?"

    # 7 shard the data
    NOT_SHARDED = "every rank goes through all images. Which sampler gives each rank its share?"
    SHARDED_BEFORE_IMAGES = "there is no `images` here yet: which line loads them?"
    SHARDED_PER_HOST = (
        "the ranks of one host share the images, and each host goes through all. How many ranks share them?"
    )
    SECOND_SHARD = (
        "the loader gets the right share, and 'shard by local rank' makes one more sampler. What is that one for?"
    )
    SHARDED_EARLY = "the loader got the serial sampler. Which line gave `sampler` its last value?"
    SHARDED_LATE = "the loader was made with the serial sampler. When did it read `sampler`?"
    NO_SET_EPOCH = "the shares are right, and every epoch has the same order. What does the sampler not know?"
    NO_EPOCH_YET = "there is no `epoch` or no `sampler` here yet: which lines make them?"
    SET_EPOCH_OF_RANDOM_SAMPLER = "`sampler` is the serial one here, which has no `set_epoch`. Which line made it last?"
    SET_EPOCH_LATE = "epoch 1 has the order of epoch 0. When does the loader ask the sampler for an order?"
    SET_EPOCH_WITHOUT_EFFECT = "the sampler hears of the epoch when all epochs are over. When does it need to know?"

    # 8 steps per epoch
    STEPS_DIVIDED = (
        "a rank leaves out all but 1/N of its share. Whose batches does `len(loader)` count, if the sampler is sharded?"
    )
    STEPS_DIVIDED_OF_ALL = (
        "the batches in `len(loader)` are not those of a rank's share here, and this card does not choose a share. "
        "Which number is `len(loader)` when step 7 is right?"
    )
    STEPS_FOLLOW = "a rank makes more steps than its share has batches: does this follow from step 7?"


class Lab14Hint(Hint):
    """By id, what is said about the other exercises."""

    # samples
    NOT_NUMBERS = "`samples` gives a list of whole numbers, those of the images."
    NOT_SHUFFLED = "the images come in their own order. What does the permutation do to them?"
    EPOCH_IGNORED = "every epoch has the same order. Which of the two numbers that make the seed is missing?"
    SEED_IGNORED = "the sampler's own seed makes no difference. Which of the two numbers is missing?"
    SEED_AND_EPOCH = "the generator is made from another seed. How do seed and epoch become one number?"
    SEED_BY_RANK = "each rank has its own permutation, so that shares overlap. What must be the same on all ranks?"
    ALL_TO_ALL = "every rank gets every image. Which of them are those of one rank?"
    BLOCKS = "each rank gets a block of neighbours in the order. Which positions does rank 1 of 3 get?"
    SHUFFLED_AFTER = (
        "each rank always has the same images, in changing order. What is permuted first, and what is shared?"
    )
    UNEVEN = "some ranks get one image more than others. Who would wait for whom in the last step?"
    DROP_LAST_IGNORED = (
        "the images that are left over are repeated where they should be dropped, or the reverse. Who says which?"
    )
    ONE_MORE = "where nothing is left over, images are repeated all the same. What is 12 divided by 4, rounded up?"
    HEAD_DROPPED = "the first images of the order are dropped. At which end are those that are left over?"
    PADDED_FROM_END = "the order is filled up with its last images. Where does the sampler begin again?"
    PADDED_IN_ORDER = (
        "the order is filled up with images 0, 1 and so on. Which images are the first in the permuted order?"
    )
    PADDED_ONCE = "the ranks are more than twice the images, and some get none. What if one repetition is not enough?"
    CUT_BY_MINUS_ZERO = "where nothing is left over, the ranks get no images at all. What is order[:-0]?"
    PADDED_OTHERWISE = (
        "{job}: the order is {order}, and after its end come {padding}. Where does the sampler begin again?"
    )
    ANOTHER_PERMUTATION = (
        "{job}: the shares are those of the order {received}, and the order is {order}. Which generator makes it, from "
        "which number, and is it the first that this generator makes?"
    )
    NUMBERS_FROM_1 = "each number is one too large. Which number does the first image have?"
    WRONG_LENGTHS = "{job}: the ranks get {lengths} images, and each should get {count}. How is that number rounded?"
    ANOTHER_ORDER = "{job}: rank {rank} has the right images in another order. Which position of the order comes first?"
    OF_ANOTHER_RANK = "{job}: rank {rank} has the share of rank {owner}. At which position does its own begin?"
    OTHER_SAMPLES = (
        "{job}: rank {rank} gets {received}. The order is {order}: which of its positions are those of this rank?"
    )

    # diagnose
    UNKNOWN_FAULT = "{said!r} is not in lab.given.FAULTS."
    MISSED_NOTHING = "{said!r} is said of a job in which nothing is wrong. May an image be seen twice, or be left out?"
    MISSED_NO_SAMPLER = "{said!r} is said of such a job. How many of the images does one rank see in an epoch?"
    MISSED_SEED_PER_RANK = "{said!r} is said of such a job. Are some images seen twice, while others are missing?"
    MISSED_BY_ONE_IMAGE = (
        "{said!r} is said of such a job: in an epoch its ranks see {seen} images, {different} different ones of "
        "{images}. How many different ones would it be if all ranks had the same seed?"
    )
    MISSED_NO_SHUFFLING = "{said!r} is said of such a job. In which order does rank 0 see its images?"
    MISSED_NO_SET_EPOCH = (
        "{said!r} is said of such a job. Which of its epochs have the same order: the first two only, or all?"
    )
    MISSED_TOO_LATE = "{said!r} is said of such a job. Which epochs have the same order, and which do not?"
    BEGINS_IN_ORDER = (
        "{said!r} is said of such a job whose order begins with 0, 1, 2 by chance. How does the order go on?"
    )
    ONLY_SHOWN = (
        "it works only for the logs that are shown: of all other jobs it says {said!r}. By which signs would you "
        "recognise a fault in a job that you have not seen?"
    )
    SAID_TOO_OFTEN = "{said!r} is also said of jobs with {faults}. Which of its signs do these have too?"
    SAID_OF_ANOTHER = "it is also said of jobs with {faults}. What distinguishes them?"

    # uneven
    NOT_DIVIDED_BY_RANKS = "this is the weight before the ranks are averaged. By what does DDP divide?"
    IDEAL_WEIGHT = (
        "this is what the weight should be, but DDP knows only the rank's own images. By what does it divide?"
    )
    OTHER_COUNT = "this is the weight of an image on another rank. Whose images does this rank's mean divide by?"
    OTHER_WEIGHT = "by hand with batches of 4 and 2 images: what does each rank's mean divide by, and then DDP?"
    FACTOR_INVERTED = "rank by rank it is the inverse. Must a rank with few images count more or less than it does?"
    RANKS_FORGOTTEN = "DDP divides by the number of ranks afterwards. What has to be undone?"
    IDEAL_FACTOR = "this is the weight that an image should have. By what must the present one be multiplied?"
    MEAN_FORGOTTEN = "this makes the sum of all images, not their mean. How many images are there together?"
    OTHER_FACTOR = "by hand with batches of 4 and 2 images: what turns the present weight into 1/6?"

    # accumulate
    RAISES = "{case}rank {rank} raises {error}"
    NOT_IN_FAKE = "{error}."
    TOO_SLOW = "`accumulate` did not end in time and was stopped. Which loop has no end?"
    STILL_RUNNING = "One of its ranks could not be stopped: restart the kernel before you go on."
    HANGS = "{case}it hangs: {error}. Who makes this call, and who does not?"
    NOT_APPLIED = "the weights do not change. Who applies the gradients?"
    SUMMED_BATCHES = (
        "the step is {count} times too long: the gradients of {count} batches were added up. By what is a mean divided?"
    )
    DIVIDED_BY_RANKS = "the step is too short, by the number of ranks. Who divides by it already?"
    LAST_BATCH_ONLY = "only the last batch counts. When are the gradients set to zero?"
    LAST_TWO_BATCHES = (
        "of {batches} batches only the last two count: `zero_grad` forgets what the others have added. How often must "
        "it be called in a step?"
    )
    OLD_GRADIENTS = (
        "the first step is right, the second is not: the gradients of the first are still there. When must they go?"
    )
    STEP_LENGTH = (
        "the step is too {short}, {ratio:.3g} times the right one. By what does a sum become the mean of {count}?"
    )
    STEP_EACH_BATCH = "the optimizer makes {count} steps. How many are asked for?"
    RANKS_DIFFER = (
        "after the step the ranks have different weights. Which batch has to be averaged, so that all gradients are?"
    )
    AVERAGED_EARLY = (
        "after the step the ranks have different weights: {count} of the `backward` calls come after the all-reduce. "
        "Which `backward` averages, if a forward pass was made outside `no_sync`?"
    )
    WRONG_STEP = (
        "all ranks have equal weights, but not those of a step with the mean over all batches of all ranks. What "
        "is summed, and what divided?"
    )
    NEVER_AVERAGED = "no all-reduce at all: each rank went its own way. Which of the batches must be outside `no_sync`?"
    FORWARD_INSIDE = "no all-reduce at all, but a `backward` is outside `no_sync`. Is its forward pass outside too?"
    WITHOUT_WITH = "{count} all-reduces: `no_sync` is called, but its block is never entered. Which word is missing?"
    AVERAGED_EACH_TIME = "{count} all-reduces for {count} batches. Which of them are not needed?"
    FORWARD_OUTSIDE = (
        "`no_sync` is used, and there are {count} all-reduces all the same. Is the forward pass inside it?"
    )
    OTHER_COUNT_OF_ALL_REDUCES = (
        "{count} all-reduces in a step of {batches} batches. Which batches are inside `no_sync`?"
    )
    LOSSES_KEPT = (
        "the activations of {count} batches are kept at a time, because their `backward` comes later than the next "
        "forward pass. When can they be forgotten?"
    )
    ONE_BACKWARD = (
        "there is one all-reduce, but only one `backward` for all pairs together, which keeps the activations of all. "
        "When can they be forgotten?"
    )
