"""The hints of lab 09; each follows the name of its step. `puzzle` and `lab` choose among them."""

from distlab.labs.verdict import Hint


class Lab09PuzzleHint(Hint):
    """By id, what is said about a layout of the puzzle."""

    # 1 initialise
    NO_INIT = "no rank knows its number: every other call of hvd ends in an error."
    USED_BEFORE_INIT = "{card!r} already asks for what is known only when the processes have met."

    # 2 pin the device
    PINNED_BY_RANK = "rank 4 is the first process of the second host of four GPUs. Is there a gpus[4]?"
    NOT_PINNED = "every process takes memory on every GPU of its host."
    PINNED_AFTER_MODEL = "TensorFlow has taken its devices by then, and refuses: what in the program uses them first?"
    PINNED_BEFORE_INIT = "at this point the process does not know its local rank yet."

    # 3 scale the learning rate
    RATE_BY_LOCAL_SIZE = (
        "two hosts of four GPUs make one global batch of eight parts. How many ranks does this card count?"
    )
    RATE_NOT_SCALED = "the global batch has grown with the ranks, and each step is as long as before."
    RATE_BEFORE_OPTIONS = "there is no `rate` here yet: which line reads it?"
    RATE_AFTER_OPTIMIZER = "the optimizer was made with the old value, and does not look at this name again."

    # 4 wrap the tape
    TAPE_NOT_WRAPPED = "each rank applies its own gradients, and the models drift apart."
    TAPE_WRAPPED_LATE = "the gradients have been computed by then, and nobody has averaged them."
    TAPE_WRAPPED_EARLY = "there is no tape here yet: which line makes a new one in each step?"

    # 5 broadcast the variables
    NO_BROADCAST = "the ranks begin with different weights, and stay different."
    BROADCAST_BEFORE_MODEL = "there is no variable yet: nothing would be sent."
    BROADCAST_BEFORE_SLOTS = "the weights are there, the optimizer's variables are not: it knows no model yet."
    BROADCAST_BEFORE_RESTORE = (
        "what is read from the checkpoint afterwards is read by each rank for itself, or by only one."
    )
    BROADCAST_AFTER_TRAINING = "the training is over. Which step is the first that needs equal weights?"
    BROADCAST_IN_LOOP = "it is inside the loop. How often is it needed, if all ranks add the same averages?"

    # 6 checkpoint on rank 0
    ONE_PER_HOST_WRITES = "every host has a process with this number, and all of them write to one folder."
    ALL_WRITE = "all ranks write the same files at the same time."
    GUARDS_ANOTHER_LINE = "it guards {line!r}. Which line must not be run by all?"
    GUARDS_A_COLLECTIVE = "it guards {line!r}. Which line must not be run by all? The other ranks never reach it."

    # 7 shard the data
    GLOBAL_BATCHES = "each rank would get batches of global size. Whose batch is the 32, and who makes the global one?"
    NOT_SHARDED = "all ranks compute with the same samples."
    SHARDED_EARLY = "there is no `samples` here yet; the line below makes it from all samples."
    SHARDED_LATE = "`batches` was made from all samples; a change of `samples` no longer reaches it."

    # 8 steps per epoch
    STEPS_BY_LOCAL_SIZE = "so the ranks of one host share an epoch, and each host goes through all of it."
    STEPS_NOT_DIVIDED = "together the ranks go through the data several times, and call it one epoch."
    STEPS_BEFORE_OPTIONS = "there is no `steps` here yet: which line reads it?"
    STEPS_DIVIDED_LATE = "the loop already read `steps` when it began."


class Lab09Hint(Hint):
    """By id, what is said about the functions, after they ran on the ranks."""

    # Every function
    RAISES = "rank {rank} raises {error}"
    HANGS = "it hangs: {error}. Who makes this call, and who does not?"
    TOO_SLOW = "it did not end in time and was stopped."
    ENDS_THE_PROGRAM = "rank {rank} ends the program. Which ranks must find a checkpoint?"

    # 1 initialise
    USED_BEFORE_INIT = "something is asked of hvd before the processes have met."
    NO_INIT = "afterwards hvd does not know that it has begun."

    # 2 pin the device
    PINNED_BEFORE_INIT = "the number that chooses the GPU is not known yet."
    NO_SUCH_GPU = (
        "rank {rank} asks for a GPU that its host does not have: {size} ranks, {per_host} GPUs on each of {hosts} "
        "hosts."
    )
    NOT_PINNED = "every rank still sees all GPUs of its host."
    ONE_NOT_PINNED = "rank {rank} has not said which GPU it needs, and sees all of them."
    SEVERAL_GPUS = "a rank says that it needs several GPUs. One process, one device."
    NO_GPU = "rank {rank} hides every GPU, its own too."
    CPU_HIDDEN = (
        "rank {rank} names its GPU without saying that it speaks of GPUs: then every other device is hidden, the CPU "
        "too."
    )
    NOT_A_GPU = "rank {rank} takes a device that is no GPU. Which kind of device is the list made of?"
    GPUS_BY_NODE = (
        "with 4 ranks that are dealt out to 2 hosts one by one, the ranks take the GPUs {gpus}: two ranks of a host "
        "the same one. Which number counts the ranks of a host?"
    )
    SAME_GPU = "all ranks of a host take the same GPU."
    WRONG_GPUS = "the ranks, {per_host} on each host, take the GPUs {gpus}. Which number is the host's?"
    FAILS_WITHOUT_GPUS = "where there is no GPU at all, it raises {error}"

    # 7 shard the data
    GLOBAL_BATCHES = "each rank gets {count} images in a step. options.batch is the batch of one rank."
    NO_BATCHES = "no rank gets a batch: its samples do not fill one. How many images does the batch of one rank have?"
    LABELS_OF_OTHERS = "the labels are not those of the samples: what has been put in another order, and what not?"
    IMAGES_OF_OTHERS = "the images are not those of the samples: what has been put in another order, and what not?"
    TOO_MANY_SAMPLES = "sample {sample} comes, and an epoch has only the samples 0 to {last}: options.images of them."
    BATCH_DIVIDED = "a rank gets {count} images in a step: options.batch, {batch}, is its own and not divided."
    WRONG_BATCHES = "the batches of a rank have {counts} images, and {batch} are needed in each."
    OUT_OF_BATCHES = "rank {rank} runs out of batches before the epoch is over: the others would wait for it."
    NOT_SHARDED = "all ranks get the same samples."
    HOSTS_ALIKE = "the ranks of one host get different samples, but each host gets the same ones as the other."
    SAMPLES_TWICE = (
        "{count} samples of an epoch go to more than one rank. From how many different orders do the ranks take?"
    )
    EPOCHS_ALIKE = "every epoch has the same order; the serial program shuffles each epoch."

    # 8 steps per epoch
    STEPS_DIFFER = "the ranks do not agree: {steps}. A rank that makes one step more waits for the others."
    NOT_A_COUNT = "{steps!r} for {job}: it counts steps, so it is a whole number."
    STEPS_NOT_DIVIDED = "{steps} for {job}: so the ranks together go through the data several times."
    STEPS_BY_LOCAL_SIZE = "{steps} for {job}: that would be right if there were one host."
    STEPS_ROUNDED_UP = "{steps} for {job}: the last step is not filled, and the serial program leaves such a step out."
    STEPS_MULTIPLIED = "{steps} for {job}: more ranks, and more steps?"
    IMAGES_OF_A_RANK = "{steps} for {job}: that is how many images a rank has, not how many steps."
    WRONG_STEPS = "{steps} for {job}: how many images does one step of all ranks take?"

    # 3 scale the learning rate
    RATES_DIFFER = "the ranks have different rates, {rates}: they drift apart."
    RATE_NOT_SCALED = (
        "the rate is {rate:.3g} with {own:.3g} for one rank and {size} ranks: it is still that of one rank."
    )
    RATE_BY_LOCAL_SIZE = (
        "the rate is {rate:.3g} with {own:.3g} for one rank and {size} ranks: it is scaled by what one host has, and "
        "there are {hosts} hosts."
    )
    RATE_BY_HOSTS = (
        "the rate is {rate:.3g} with {own:.3g} for one rank and {size} ranks: it is scaled by the number of hosts, "
        "{hosts}."
    )
    RATE_OF_OTHER_SIZE = (
        "with {size} ranks the rate is {rate:.3g}, and {own:.3g} is that for one rank: is a number typed in?"
    )
    RATE_DIVIDED = (
        "the rate is {rate:.3g} with {own:.3g} for one rank and {size} ranks: it is divided. An average of more "
        "samples allows a longer step, not a shorter one."
    )
    RATE_SCALED_TWICE = "the rate is {rate:.3g} with {own:.3g} for one rank and {size} ranks: it is scaled twice."
    RATE_BY_SQUARE_ROOT = (
        "the rate is {rate:.3g} with {own:.3g} for one rank and {size} ranks: the square root is another rule; the "
        "linear one is asked for."
    )
    WRONG_RATE = "the rate is {rate:.3g} with {own:.3g} for one rank and {size} ranks."
    ANOTHER_OPTIMIZER = "the rate is right; the serial program has SGD with momentum, this is another {optimizer}."

    # 4 wrap the tape
    NOT_APPLIED = "the weights are still the first ones: nothing was applied."
    WRAPPED_TAPE_NOT_USED = "a tape was wrapped, but the gradients do not come from the wrapped one: when is it asked?"
    TAPE_NOT_WRAPPED = "each rank has applied the gradients of its own samples. Which object is asked for them?"
    GRADIENTS_SUMMED = "the gradients are added up and not averaged: the step is too long, by the number of ranks."
    GRADIENTS_DIVIDED_TWICE = "the average is divided once more."
    WEIGHTS_DIFFER = "after one step the ranks' weights differ, although they were equal before."
    NOT_BY_OPTIMIZER = (
        "the first step is right, the second is not: state.optimizer has a momentum, which goes on from step to step. "
        "Who changes the weights?"
    )
    NO_LOSS = "the weights are right, and `step` returns no number: the loss before the step is asked for."
    ANOTHER_LOSS = "the weights are right; the loss is {loss:.4g}, and before the step it was {before:.4g}."
    WRONG_STEP = "all ranks have equal weights, but not those of a step with the average of their gradients."

    # 5 broadcast the variables
    CHECKPOINT_NOT_SHARED = "after a restart rank 0 has the checkpoint, and nobody tells the others: they start again."
    NO_BROADCAST = "each rank still has its own first weights."
    NOT_RESTORED = "with options.resume, rank 0 does not have the weights of its checkpoint afterwards."
    RESUMED_UNASKED = "without options.resume, rank 0 has the weights of the checkpoint that lies in the folder."
    BROADCAST_BEFORE_RESTORE = (
        "after a restart rank 0 has the checkpoint, the others its first weights. In which order was that?"
    )
    ANOTHER_ROOT = "all have the weights of rank {rank}. Which rank reads the checkpoint and writes it?"
    NOT_WEIGHTS_OF_RANK_0 = "the ranks do not all have the weights of rank 0."
    MOMENTUM_DIFFERS = "the weights are equal, the momentum is not: a step needs more than the model."
    EPOCHS_DIFFER = "weights and momentum are equal, but the epochs that are done are {epochs}."

    # 6 checkpoint on rank 0
    NOBODY_WRITES = "nobody has written a checkpoint."
    ALL_WRITE = "all ranks write. In one folder they would disturb each other."
    ONE_PER_HOST_WRITES = "ranks {ranks} write: one on each host."
    NOT_READABLE = (
        "tf.train.latest_checkpoint finds nothing in the folder that rank 0 wrote to, and `begin` looks there."
    )
    STATE_INCOMPLETE = "the checkpoint lacks {missing}: a run that goes on needs all of `state`."
    WRONG_WRITERS = "the writers are {ranks}. Which rank has what `begin` reads?"
