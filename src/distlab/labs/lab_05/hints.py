"""What lab 05 says about wrong answers; most follow the name of a part."""

from distlab.labs.verdict import Hint


class Lab05Hint(Hint):
    """By exercise: `numbers_of`, `run`, `lacks`, `housekeeping`."""

    # The images of a step
    NO_NUMBERS = "`numbers_of` gives {batch} numbers for each step, from 0 to {last}. For step {step} it gives {said}."
    DEPENDS_ON_CALLS = (
        "step {step} has other images when it is asked for a second time, after other steps. A resumed run asks for "
        "the later steps only: what may the order depend on?"
    )
    TWICE_IN_EPOCH = (
        "with {images} images and batches of {batch}, steps {first} and {step} are in the same epoch, and both have "
        "image {image}. In which epoch is a step, and at which place of it?"
    )
    SAME_EVERY_EPOCH = "epoch {epoch} has the order of epoch 0. What must the order depend on besides the seed?"
    SAME_FOR_EVERY_SEED = "two seeds give the same order. Where does the seed come in?"
    NEVER_USED = "image {image} is in no step of {epochs} epochs. Are the images shuffled before or after the cut?"
    ONLY_SHIFTED = "the images stay in their order, it only begins elsewhere. What shuffles them?"
    ONLY_BATCHES = "the batches change places, but each has the same images in every epoch. What should be shuffled?"

    # Run and resume: checkpoints
    TOO_MANY_STEPS = "after {count} steps the run still goes on; it should end after step {last_step}. What counts?"
    NO_CHECKPOINT = "no checkpoint appears in the folder. Who writes one, and when?"
    SAVED_EVERY_STEP = "a checkpoint is saved after every step; asked for is every {every} steps and the last."
    SAVED_AT_END_ONLY = "there is only one checkpoint, at the end. What does an interruption in the middle leave?"
    LAST_NOT_SAVED = "the last step, {last_step}, is not saved. With every {every} steps, it is not its turn."
    OTHER_SAVES = "checkpoints are saved after steps {said}, and should be after steps {expected}."
    KEEPS_MORE = "{count} checkpoints are in the folder at the same time. Which option of the manager limits them?"
    KEEPS_FEWER = "only one checkpoint is kept. If it is damaged, all is lost: how many should there be?"
    # Run and resume: each part of the state
    NOTHING_RESTORED = "a restarted run begins from the start, although there is a checkpoint. Who reads it, and when?"
    OLDER_RESTORED = "it resumes after step {said}, and the newest checkpoint is that of step {expected}."
    WEIGHTS_LOST = "after a restart the weights are those of a new model. Is the model in the checkpoint?"
    AVERAGES_LOST = (
        "after a restart Adam has lost its averages, or its step count, which is {count}. Which object has them?"
    )
    RATE_LOST = "after a restart the learning rate is {said:.4g} instead of {expected:.4g}. Which object has it?"
    POSITION_LOST = "after {expected} steps the run resumes with the images of step {said}. What remembers the place?"
    WRONG_IMAGES = "the images of its first steps are not those of these steps. Which step does `training.step` name?"
    STEPS_WRONG = "it ends after step {said}; it should after {expected}."
    TRAINED_WHEN_DONE = "it trains although `last_step` is reached already. What should it compare before each step?"
    GENERATOR_LOST = "after a restart the dropout masks are those of the first steps. Which object draws them?"
    LOWEST_LOST = "after a restart the lowest loss so far is infinite. What reads it in `train_step`, and for what?"
    ENDS_ELSEWHERE = "all is restored, but the weights at the end are others than those of the undisturbed run."

    # What a checkpoint lacks: by the right part
    UNKNOWN_PART = "{said!r} is none of the names in `lab.given.PARTS`."
    NOT_WEIGHTS = (
        "the first step has the same images and the same mask, and another loss already. What does that loss depend on?"
    )
    NOT_AVERAGES = (
        "the first step has the same loss, up to rounding, and the same rate; then each weight's change differs by "
        "another factor. Which quantities in Adam's formula differ from weight to weight?"
    )
    NOT_STEP_COUNT = (
        "in the first step all changes differ by one factor, up to rounding, and the rate is the same. Which number in "
        "Adam's formula is the same for all weights?"
    )
    NOT_LEARNING_RATE = "loss, up to rounding, images and mask of the first step agree. Which number there does not?"
    NOT_POSITION = "look at the images of the first step: everything else follows from them."
    NOT_RANDOM = "the first step has the same images. What differs that was drawn at random?"

    COMPARED_EXACTLY = "the losses of the first step are equal up to rounding. How do you compare two such numbers?"

    # Which checkpoint to resume from, which to delete
    NO_DICTIONARY = "`housekeeping` gives a dictionary with the names resume and delete."
    NO_LIST = "this is {said!r}, and should be a list of numbers."
    RESUMES_WITHOUT_INDEX = "checkpoint {said} has no index file, or an empty one. Can it be read?"
    RESUMES_WITHOUT_DATA = "checkpoint {said} lacks a data file, or has an empty one. Can it be read?"
    RESUMES_OLDER = "checkpoint {said} is whole, but {expected} is newer and whole too."
    RESUMES_FIRST_LISTED = "checkpoint {said} is the last or first one listed. The list is in no order."
    RESUMES_NOTHING = "nothing, although checkpoint {expected} is whole. Which files must it have?"
    RESUMES_WITHOUT_WHOLE = "{said!r}, but no checkpoint is whole. What does `restore` do at a first start?"
    DELETES_NOTHING = "nothing is deleted. What of these would nobody use any more?"
    DELETES_WITHOUT_WHOLE = "no checkpoint is whole, and something is deleted. What may the newest one still become?"
    DELETES_NEWER = "{said} may be in the middle of being written: it is newer than the newest whole one."
    DELETES_KEPT = "{said} is one of the {keep} newest whole ones."
    KEEPS_DAMAGED = "{said} is damaged and older than the newest whole one: who would ever use it?"
    KEEPS_OLD = "{said} is whole, but there are {keep} newer whole ones."
    DELETES_UNKNOWN = "{said} is not the number of a checkpoint in the folder."
