"""What lab 05 says about wrong answers; most follow the name of a part."""

from distlab.labs.verdict import Hint


class Lab05Hint(Hint):
    """By exercise: `numbers_of`, `run`, `lacks`, `housekeeping`."""

    # The images of a step
    NO_NUMBERS = (
        "`numbers_of` should give {batch} whole numbers for each step, from 0 to {last}, in one list or array. For "
        "step {step} it gives {said}."
    )
    DEPENDS_ON_CALLS = (
        "Step {step} has other images when it is asked for a second time, after other steps. A resumed run asks for "
        "the later steps only: what may the order depend on?"
    )
    LOST_AT_RESTART = (
        "Step {step} has other images in a new process, which runs your cell again and asks for the last steps first. "
        "What does the order depend on that a new process does not have: a generator that is not seeded, earlier "
        "calls, `hash` of a text?"
    )
    TWICE_IN_STEP = "Step {step} has image {image} twice. Are the images drawn, or shuffled?"
    TWICE_IN_EPOCH = (
        "With {images} images and batches of {batch}, steps {first} and {step} are in the same epoch, and both have "
        "image {image}. In which epoch is a step, and at which place of it?"
    )
    SAME_EVERY_EPOCH = "Epoch {epoch} has the order of epoch {earlier}. What must the order depend on besides the seed?"
    SAME_FOR_EVERY_SEED = "Seeds {seed} and {other} give the same orders. Where does the seed come in?"
    SAME_FOR_SEEDS_IN_AN_EPOCH = (
        "Epoch {epoch} has the same order with seed {seed} as with seed {other}, other epochs do not. What is "
        "computed from seed and epoch there?"
    )
    NEVER_USED = "Image {image} is in no step of {epochs} epochs. Are the images shuffled before or after the cut?"
    ONLY_SHIFTED = "The images stay in their order, it only begins elsewhere. What shuffles them?"
    ONLY_BATCHES = "The batches change places, but they have the same images in two epochs. What should be shuffled?"
    NOT_SHUFFLED_AGAIN = (
        "Epoch {epoch} has the order of epoch {earlier}, {change}. What shuffles the images again in each epoch?"
    )
    SEED_DOES_NOT_SHUFFLE = (
        "Epoch {epoch} has with seed {other} the order of seed {seed}, {change}. What should the seed decide?"
    )

    # Run and resume: errors of TensorFlow
    NOT_TRACKABLE = (
        "`Checkpoint` cannot save `{name}`: it saves variables, optimizers, generators, models, and lists and "
        "dictionaries of these. Which objects of the training change in a step?"
    )
    RESTORES_FOLDER = (
        "`restore` needs the name of one checkpoint, and gets the folder. What of the manager names the newest one?"
    )
    STEP_AS_IMAGES = "`train_step` needs the numbers of the images of a step. Which method of the training gives them?"
    STEP_NOT_A_NUMBER = "`training.step` is a variable, and `numbers` needs a number. What does `int(…)` make of it?"

    # Run and resume: checkpoints
    TOO_MANY_STEPS = "After {count} steps the run still goes on; it should end after step {last_step}. What counts?"
    RESTORED_AGAIN = "The run goes back to step {step} while it trains. How often does a process restore?"
    NO_CHECKPOINT = "There is no checkpoint of a `CheckpointManager` in the folder. Who writes one, and when?"
    SAVED_EVERY_STEP = "A checkpoint is saved after every step; asked for is every {every} steps and the last."
    SAVED_AT_END_ONLY = "There is only one checkpoint, at the end. What does an interruption in the middle leave?"
    LAST_NOT_SAVED = "The last step, {last_step}, is not saved. With every {every} steps, it is not its turn."
    SAVED_TWICE = "Step {step} is saved twice. Which two reasons to save can come together?"
    SAVED_WHEN_DONE = "The call with nothing left to do saves a checkpoint again. Which call of `save` does it reach?"
    SAVED_WHEN_KILLED = (
        "A checkpoint is saved while the process is killed. A killed process runs no `finally` and no `except`: after "
        "which steps may you save?"
    )
    OTHER_SAVES = "Checkpoints are saved after steps {said}, and should be after steps {expected}."
    KEEPS_MORE = "{count} checkpoints are in the folder at the same time. Which option of the manager limits them?"
    KEEPS_FEWER = "Only one checkpoint is kept. If it is damaged, all is lost: how many should there be?"
    # Run and resume: each part of the state
    NOTHING_RESTORED = "A restarted run begins from the start, although there is a checkpoint. Who reads it, and when?"
    OLDER_RESTORED = "It resumes after step {said}, and the newest checkpoint is that of step {expected}."
    WEIGHTS_LOST = "After a restart the weights are those of a new model. Is the model in the checkpoint?"
    AVERAGES_LOST = (
        "After a restart Adam has lost its averages, or its step count, which is {count}. Which object has them?"
    )
    RATE_LOST = "After a restart the learning rate is {said:.4g} instead of {expected:.4g}. Which object has it?"
    POSITION_LOST = "After {expected} steps the run resumes with the images of step {said}. What remembers the place?"
    WRONG_IMAGES = (
        "Step {step} is trained on the images of step {said}; the first step is step 0. Who counts the steps, and "
        "which one is next?"
    )
    IMAGES_OF_NO_STEP = (
        "Step {step} is trained on other images than `training.numbers({step})` gives. What chooses the images?"
    )
    STEPS_WRONG = "It ends after step {said}; it should after {expected}."
    TRAINED_WHEN_DONE = "It trains although `last_step` is reached already. What should it compare before each step?"
    GENERATOR_LOST = "After a restart the dropout masks are those of the first steps. Which object draws them?"
    LOWEST_LOST = "After a restart the lowest loss so far is infinite. What reads it in `train_step`, and for what?"
    ENDS_ELSEWHERE = "All is restored, but the weights at the end are others than those of the undisturbed run."

    # What a checkpoint lacks: by the right part
    UNKNOWN_PART = "{said!r} is none of the names in `lab.given.PARTS`."
    NOT_WEIGHTS = (
        "The first step has the same images and the same mask, and another loss already. What does that loss depend on?"
    )
    NOT_AVERAGES = (
        "The first step has the same loss, up to rounding, and the same rate; the changes differ, and not all by one "
        "factor. Which quantities in Adam's formula differ from weight to weight?"
    )
    NOT_STEP_COUNT = (
        "In the first step all changes differ by one factor, up to rounding, and the rate is the same. Which number in "
        "Adam's formula is the same for all weights?"
    )
    NOT_LEARNING_RATE = "Loss, up to rounding, images and mask of the first step agree. Which number there does not?"
    NOT_POSITION = "Look at the images of the first step. What follows from them?"
    NOT_RANDOM = "The first step has the same images. What differs that was drawn at random?"

    COMPARED_EXACTLY = "The losses of the first step are equal up to rounding. How do you compare two such numbers?"

    # Which checkpoint to resume from, which to delete
    NO_DICTIONARY = '`housekeeping` should give a dictionary with the names "resume" and "delete". It gives {said}.'
    NO_LIST = "this is {said!r}, and should be a list of numbers."
    RESUMES_WITHOUT_INDEX = "checkpoint {said} has no index file, or an empty one. Can it be read?"
    RESUMES_WITHOUT_DATA = "checkpoint {said} lacks a data file, or has an empty one. Can it be read?"
    RESUMES_OLDER = "checkpoint {said} is whole, but {expected} is newer and whole too."
    RESUMES_NOTHING = "nothing is chosen, although checkpoint {expected} is whole. Which files must it have?"
    RESUMES_WITHOUT_WHOLE = "it is {said!r}, but no checkpoint is whole. What does `restore` do at a first start?"
    RESUMES_UNKNOWN = "it is {said!r}, which is not the number of a checkpoint in the folder."
    DELETES_NOTHING = "nothing is deleted. What of these would nobody use any more?"
    DELETES_WITHOUT_WHOLE = "no checkpoint is whole, and something is deleted. What may the newest one still become?"
    DELETES_NEWER = "{said} may be in the middle of being written: it is newer than the newest whole one."
    DELETES_KEPT = "{said} is deleted, but it is one of the newest whole ones, which you should keep."
    DELETES_TWICE = "{said} is in the list twice. What does the second deletion of a file do?"
    KEEPS_DAMAGED = "{said} is damaged and older than the newest whole one: who would ever use it?"
    KEEPS_OLD = "{said} is kept, but there are enough newer whole ones. How many does `keep` allow?"
    DELETES_UNKNOWN = "{said!r} is not the number of a checkpoint in the folder."
