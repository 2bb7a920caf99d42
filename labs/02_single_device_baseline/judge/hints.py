"""The hints of lab 02."""

from distlab.labs.verdict import Hint


class Lab02Hint(Hint):
    """By exercise: `diagnosis`, `make_model`, `elapsed_seconds`, `make_batches`."""

    # Symptoms and causes
    NO_DICTIONARY = "`diagnosis` is a dictionary: each symptom's name has a cause."
    NOT_IN_THE_LIST = "{cause!r} is not in the list of causes."
    ANOTHER_SYMPTOM = "this is a fault, but it does not cause this symptom: {symptom}."
    LEARNING_RATE = "the learning rate is too large: no step has been made when this loss is computed."
    FIRST_WEIGHTS = (
        "the weights begin too large: Keras draws them so that the outputs stay small. What does the loss do with the "
        "outputs?"
    )
    CLOCK_STARTS_EARLY = "the clock starts before the work: that is correct. What would it measure if it started later?"
    CLOCK_STOPS_EARLY = (
        "the clock stops before the work has ended: a call ends when the work has ended. Is any time too short except "
        "that of waiting?"
    )
    LAST_BATCH_DROPPED = (
        "the last batch is dropped: that is one step fewer, and it is the same for every number of replicas."
    )
    NOT_SHUFFLED = "the images are not shuffled: the order of images changes no count."

    # The model and its loss
    NO_MODEL = "`make_model` gives {kind}, not a Keras model."
    KERAS_3 = "This model is of Keras 3. The course uses `tf.keras`: from where does yours come?"
    ANOTHER_NETWORK = (
        "The weights have the shapes {shapes}. Those of the lecture belong to 784 pixels, 128 units and 10 outputs."
    )
    NO_RELU = "The outputs are those of a network without ReLU: what does the lecture's hidden layer do with its sums?"
    ANOTHER_DROPOUT = "The lecture's network drops a fifth of the hidden units, and nothing else; here it is {rates}."
    ANOTHER_OPTIMIZER = "The lecture compiles with Adam and its usual rate; here it is {optimizer}."
    SOFTMAX_TWICE = "The model's outputs are probabilities, but flatter than they should be. Is there only one softmax?"
    ANOTHER_LAST_LAYER = (
        "The model's outputs are neither the ten logits nor their softmax. What does the last layer do?"
    )
    SOFTMAX_AND_FROM_LOGITS = (
        "The model gives probabilities, and the loss is told that they are logits. Keras noticed, with a warning; with "
        "another layer behind the softmax it would not notice."
    )
    WRONG_LABELS = "The loss does not fit the labels{reason}. They are numbers from 0 to 9, not rows of ten."
    NOT_COMPILED = "The model is not compiled, so it has no loss."
    MODEL_RAISED = "`make_model` or its use raises {kind}{reason}."
    LOGITS_AS_PROBABILITIES = (
        "With fixed weights the loss is {loss:.2f}, and the cross-entropy is {expected:.2f}. Before training it is "
        "{untrained:.2f}, and a model that knows nothing has ln 10 = 2.30. What does the last layer give, and what "
        "does the loss expect?"
    )
    ANOTHER_LOSS = (
        "With fixed weights the loss is {loss:.2f}, and the cross-entropy is {expected:.2f}. Is it a cross-entropy of "
        "the labels, over all images?"
    )

    # The clock
    WORK_NOT_ONCE = "The work was done {calls} times. Do it once, between two readings of the clock."
    NO_SECONDS = "{seconds!r} is not a number of seconds."
    NEGATIVE = "The number is negative: the later time was subtracted from the earlier one."
    ANOTHER_UNIT = "{seconds:.0f} for work of {expected:.2f} s: the unit must be seconds."
    WHOLE_SECONDS = "{seconds} for work of {expected:.2f} s: the fraction of the second is lost."
    CLOCK_STANDS_STILL = "{seconds:.2f} s for {expected:.2f} s of waiting: this clock stops while the program waits."
    STARTS_LATE = "{seconds:.2f} s for {expected:.2f} s of waiting: the clock was first read too late."
    TOO_LONG = "{seconds:.2f} s, and the whole call took {whole:.2f} s. From which moment does it count?"
    BELOW_ZERO = "{seconds:.2f} s for work of {expected:.2f} s: a time below zero."

    # The batches
    NO_DATASET = "`make_batches` gives {kind}, not a tf.data.Dataset."
    NO_PAIRS = "The data set must give pairs of images and labels."
    NO_BATCHES = "The data set gives single images, not batches."
    NEVER_ENDS = "the data set never ends; an epoch is one pass."
    NUMBER_FOR_NAME = "batches of 64. Where does the program use a number instead of a name?"
    BATCH_OF_ONE_REPLICA = "batches of {first} in all, and the strategy will divide them once more."
    REPLICAS_TWICE = "batches of {first}: the number of replicas is multiplied twice."
    ANOTHER_FIRST_BATCH = "the first batch has {first} images. How many does one step need, over all replicas?"
    REST_LEFT_OUT = "{steps} steps; {rest} images are left out in every epoch."
    ANOTHER_BATCH = "batch {place} has {count} images, and {expected} are needed. Are all batches made alike?"
    SHARDED = "only {seen} of {count} images come. The strategy divides each batch itself: who else divides here?"
    NOT_ONCE = "not every image comes once."
    LABELS_MIXED_UP = "images and labels no longer belong together. What was shuffled separately?"
