"""The hints of lab 03."""

from distlab.labs.verdict import Hint


class Lab03Hint(Hint):
    """By exercise: `numbers`, `mirrored`, `samples_seen`."""

    # Four numbers
    BATCH_OF_ONE_REPLICA = "that is what one replica gets. How many images does one update see?"
    BATCH_DIVIDED = "the strategy divides the global batch. Is the global batch larger or smaller than a part of it?"
    STEPS_WITHOUT_REST = "the images that do not fill a batch are trained on too."
    STEPS_OF_ONE_REPLICA = "in one step every replica uses one batch, all at the same time."
    STEPS_OF_ONE_REPLICA_WITHOUT_REST = (
        "in one step every replica uses one batch, and the images that do not fill a batch are trained on too."
    )
    ONE_STEP_PER_IMAGE = "a step is an update, not an image."
    UPDATES_OF_ONE_EPOCH = "that is one epoch."
    UPDATES_TIMES_REPLICAS = "the replicas make each update together, so it counts once."
    UPDATES_WITHOUT_REST = "each epoch has one step more, for the images that do not fill a batch."
    UPDATES_OF_ONE_REPLICA = "count the steps with the global batch."
    LAST_BATCH_EMPTY = "if nothing is left over, the last batch is a full one."
    LAST_BATCH_OF_SMALL_BATCHES = (
        "that is what is left after the batches of one replica. What is left after global batches?"
    )
    LAST_BATCH_FULL = "what is left after the full batches?"
    LAST_BATCH_OF_ONE_REPLICA = "that is one replica's part of it."
    ANOTHER_NUMBER = "not right. Draw the batches as boxes on a line."

    # The mirrored program
    ANOTHER_STRATEGY = "`strategy` is no longer the mirrored strategy that the lab has made."
    NOT_TWO_THINGS = "`mirrored` returns two things, the model and the batches it was trained on."
    NO_MODEL = "The first thing that `mirrored` returns is not a Keras model."
    NO_BATCHES = "The second thing that `mirrored` returns is not a tf.data.Dataset."
    DIFFERENT_SCOPES = (
        "TensorFlow says that a variable and its use belong to different scopes. What must be created inside the scope?"
    )
    RAISED = "`mirrored` raises {kind}: {message}"
    NOT_MIRRORED = "The weights exist once, on one device: nothing is mirrored. Where must they be created?"
    PER_REPLICA_BATCH = (
        "Each replica gets {parts} images instead of {expected}: the strategy divides what batch(...) says. Which "
        "batch size is that?"
    )
    MULTIPLIED_TWICE = "Each replica gets {parts} images instead of {expected}: one multiplication too many."
    WRONG_PARTS = "Each replica gets {parts} images instead of {expected}."
    REST_DROPPED = "{rest} of {images} images are never seen: the last, smaller batch is dropped."
    WRONG_COUNT = "The batches hold {seen} images, and there are {images}. Each must come once."
    WRONG_ORDER = "The images come in another order than in the serial program, so the results cannot be compared."
    DROPOUT = "The model drops units at random, so no two runs are equal. The serial program has no dropout."
    LOGITS_AS_PROBABILITIES = (
        "The model gives logits, and the loss takes them for probabilities. Keep the serial program's loss."
    )
    STRATEGY_IGNORED = (
        "Each variable has {copies} copies. A function that gets a strategy uses that one: where does another come "
        "from?"
    )
    NEXT_PASS_BEGINS = (
        "The batches never end, and those of one pass hold {seen} images instead of {images}: the next pass begins "
        "within a batch. Which is first, `batch` or `repeat`?"
    )
    FIT_SHUFFLES = (
        "`fit` got arrays, and those it shuffles. The serial run keeps the order: what does it give to `fit`?"
    )
    ANOTHER_OPTIMIZER = "The optimizer is {optimizer}; the serial program uses another one."
    WRONG_UPDATES = "There were {updates} updates, and one pass over these batches has {steps}."
    NOT_TRAINED = "The weights are still the first ones: nothing was trained."
    STEPS_TOO_LONG = (
        "Each step is too long by the number of replicas. Is something summed or scaled that is already a mean?"
    )
    STEPS_TOO_SHORT = "Each step is too short by the number of replicas. Is something divided twice?"
    OTHER_WEIGHTS = (
        "The weights are not those of the serial run. Does the model begin with the first weights that the function "
        "gets, and is the learning rate the same?"
    )

    # The auto-shard table
    OFF_DIVIDES = "with OFF nothing is rewritten. What does a pipeline read that nobody has divided?"
    DATA_BY_IMAGES = "TensorFlow deals out whole batches, not single images."
    DATA_IN_BLOCKS = "the batches are dealt out one by one like cards, not cut into connected blocks."
    FILES_IN_BLOCKS = "files are dealt out one by one like cards, not cut into connected blocks."
    COUNTS_FILES = "these are numbers of files. How many images are in them?"
    THIS_IS_OFF = "this would be OFF."
    AUTO_IS_NOT_DATA = "this would be DATA. The pipeline reads files: what does AUTO try first?"
    THIS_IS_DATA = "this would be DATA."
    THIS_IS_FILE = "this would be FILE."
    BATCH_IS_DIVIDED = (
        "here every batch is divided among the workers. `batch` is the batch of each pipeline, and a whole one goes to "
        "one worker."
    )
    OTHER_WORKERS = "the numbers are right, but for other workers. With which batch or file does worker 0 start?"
    OTHERWISE_DEALT = "they add up to all images, but other workers get them. Deal out four parts by hand."
    NONE_FOR_ALL_TOGETHER = "TensorFlow refuses as a whole: what stands for that is one None, not one per worker."
    SOMEBODY_WITHOUT_A_BATCH = "some worker would have no batch at all. What does TensorFlow do then?"
    FILES_DO_NOT_MATTER = "this policy deals out no files, so few files are no reason to refuse."
    SOMEBODY_WITHOUT_A_FILE = "some worker would have no file at all. What does TensorFlow do then?"
    NOT_REFUSED = "there are enough files, so TensorFlow does not refuse."
    NOT_ONE_PER_WORKER = "it must be a list with one number for each of {workers} workers."
    WRONG_SUM = "they add up to {seen} of {images} images."
