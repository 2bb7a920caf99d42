"""What lab 16 says about wrong answers."""

from distlab.labs.verdict import Hint


class Lab16TrainHint(Hint):
    """Of `train`: what keeps it from running, then part by part."""

    NOT_DISTRIBUTED = "Nobody calls `hvd.init()` or makes a `MultiWorkerMirroredStrategy`. How do the ranks meet?"
    NO_INIT = "A rank asks Horovod something before `hvd.init()`. What must come first?"
    HANGS = "{problem}. Which call does that rank leave out, or make a different number of times?"
    TOO_SLOW = "The ranks do not come to an end. What do they wait for, or which loop does not end?"
    TOO_MANY_STEPS = "There are more steps than all epochs have. Where does the loop over an epoch end?"
    RAISES = "Rank {rank} fails with {error}."
    ALL_READ = "Rank {rank} finds no checkpoint: only rank 0's host has it. Who reads, and how do the others get it?"
    NO_SCOPE = "The model or the optimizer is made outside the strategy. Which `with` must be around it?"
    NO_INT = (
        "`int` and `float` cannot read a variable of a strategy's scope. Which method of the variable gives its value?"
    )
    STRATEGY_LATE = (
        "TensorFlow computes something before the strategy is made; real workers fail then. What comes first?"
    )
    EPOCHS_DIFFER = "The ranks begin with different `epochs_done` ({counts}). Who tells them rank 0's, and after what?"
    NOTHING_ON_RANK = "On rank {rank} `train` gives None. Which ranks must return the state and the steps?"
    WRONG_FORM = "`train` gives the checkpoint object `state` and the list of steps, as the serial program ({problem})."
    NO_STEPS = "A rank changes no weights through the optimizer. Where is `apply_gradients`?"
    OTHER_TEXTS = "The model gets texts that are not in the data. What does `topics.texts` give for these options?"
    STEPS_DIFFER = "The ranks make different numbers of steps ({counts}). How many has an epoch of the serial program?"
    ANOTHER_STRATEGY = (
        "This strategy has no `cluster_resolver`: it uses the devices of one process. Which one is for several workers?"
    )
    # start
    NO_BROADCAST = "the ranks begin with different weights. Who tells them those of rank 0, and when?"
    NOT_RESUMED = "the first weights are not those of the checkpoint. When is it read, and what comes after that?"
    NO_MOMENTUM = "rank {rank} lacks the momentum of the checkpoint. Is the model the whole state?"
    # shares
    NOT_SHARED = "every rank works on the whole global batch. Which of its texts are for this rank?"
    BATCH_PER_RANK = "a step has {count} texts on all ranks, not {batch}: `batch` is of all ranks. What is one's share?"
    LAST_DROPPED = "the last, smaller batch of an epoch is missing. What does the serial program do with it?"
    STEPS_MISSING = "the number of steps that are missing is {count}. Does a step take a batch that is divided already?"
    STEPS_TOO_MANY = "the number of steps is {count}, and the serial program makes {expected}. How many has an epoch?"
    ALL_TEXTS_EACH = "every rank goes through all texts, in {count} steps instead of {expected}. Who divides them?"
    FROM_THE_START = "the steps are those of all epochs, and {done} of them was done before. Where does the loop begin?"
    OVERLAP = "in an epoch texts come twice: {count} of them. Do all ranks divide one and the same order?"
    TEXTS_MISSING = "texts of an epoch are on no rank: {count} of them. Who takes the last ones of a batch?"
    OTHER_BATCH = "a step has other texts than that of the serial program. Is the order the same, and then divided?"
    UNEVEN = "a rank has {count} texts of a batch of {batch} for {size} ranks. How many should each one have?"
    # rate
    RATE_SCALED = "the rate is {rate:g}, and it was {own:g}: but the global batch has not grown. Why go further?"
    ANOTHER_RATE = "the rate is {rate:g}, and it was {own:g}. Does the global batch change?"
    ANOTHER_OPTIMIZER = "the optimizer is another one than the serial program's. Which one does that use?"
    # average
    NOT_EXCHANGED = "each rank goes by its own gradient. Who adds those of the others?"
    PART_ALONE = "each rank goes by its own part of the gradient. Who adds the parts of the others?"
    MEANS_ADDED = "the ranks' means are added up, so the gradient is too long. By what is each sum to be divided?"
    MEAN_OF_MEANS = "in the last batch ranks have different numbers of texts. Does each text count alike in your mean?"
    ADDED_TWICE = "the gradient is too long by the number of ranks: it is added up twice. Which call adds already?"
    DIVIDED_TWICE = "the gradient is divided by the number of ranks once too often. Which call divides already?"
    NOT_DIVIDED = "the losses are added up. By how many texts is the sum to be divided?"
    DIVIDED_BY_RANKS = "the losses are divided by the number of ranks only. How many texts are in the sum?"
    DIVIDED_BY_BATCH = "the last batch is divided by the size of a full one. How many texts has it?"
    AVERAGE_OTHERWISE = "step {step} does not go by the mean gradient of its texts. By what is each loss divided?"
    # record
    RECORD_LENGTH = "the record has {count} steps, and {expected} were made. What does each step append?"
    RECORD_EMPTY = "a step's record lacks `texts` or `loss`, or it is no number."
    NO_SECONDS = "a step's record lacks `seconds`, or it is no number. What does the serial program append?"
    SECONDS_TOO_FEW = (
        "`seconds` of step {step} is {said:.2g}, and `apply_gradients` alone took {least:.2g}. "
        "Between which two moments does the serial program measure?"
    )
    SECONDS_TOO_MANY = (
        "`seconds` of step {step} is {said:.2g}, and no more than {most:.2g} passed from the step before to the next. "
        "When does the clock start?"
    )
    OWN_TEXTS = "a step's `texts` are those of one rank. How many did all ranks work on?"
    ANOTHER_COUNT = "`texts` is {count:g} for a step with {expected}. Count those of all ranks."
    OWN_LOSS = "a step's `loss` is that of one rank's texts. What is the mean over all?"
    PART_OF_LOSS = "a step's `loss` is one rank's part of it. Who adds the parts?"
    ANOTHER_LOSS = "a step's `loss` is {loss:.4f}, and the mean over its texts {expected:.4f}. What is added?"
    # checkpoint
    NOBODY_SAVES = "rank 0 writes no checkpoint. When does the serial program write one?"
    ALL_SAVE = "several ranks write into `options.folder`. On a shared disk, whose file would remain?"
    WRONG_RANK_SAVES = "another rank than rank 0 writes the checkpoint. Who reads it next time?"
    NOT_WHOLE = "the checkpoint lacks {missing}. What does the next run need?"
    SAVED_LATE = "a new epoch begins before rank 0 has saved the one before. What is lost if the job stops now?"
    SAVED_IN_BETWEEN = "rank 0 saves before step {step}, in the middle of an epoch. When does the serial program save?"
    EPOCHS_WRONG = "the newest checkpoint says {count} epochs after {expected}. What comes first, count or save?"


class Lab16NumberHint(Hint):
    """Of `throughput`, `profile` and `predict`."""

    NOT_BY_RANKS = "`throughput` gives a dictionary with the ranks of `measured`, and for each three numbers by name."
    WARM_UP_INCLUDED = "the warm-up is in it. From which step on do you count?"
    ONE_LEFT_OUT = "one step too many is left out. How many are the warm-up?"
    MEAN_RATE = "this is a mean, which one disturbed step can spoil. What does chapter 11 take instead?"
    ONE_OF_TWO = "this is one of the two steps in the middle. What is the median of an even number of them?"
    SUM_OF_ALL = "this divides all texts by all seconds, with the disturbed steps. What is the rate of each step?"
    FULL_BATCHES = "not every step has as many texts. What is the rate of each step by itself?"
    RATE_OF_ONE = "this is one rank's share. How many texts do all ranks do in a second?"
    RATE_MULTIPLIED = "the texts of a step are those of all ranks already. Why multiply?"
    RATE_OTHERWISE = "it is not the median, over the steps after the warm-up, of texts by seconds."
    UPSIDE_DOWN = "this is upside down. Should it grow when the ranks are faster?"
    SPEEDUP_IS_EFFICIENCY = "this is the efficiency. What is the speed-up itself?"
    SPEEDUP_IDEAL = "this is the ideal one. What was measured?"
    SPEEDUP_OTHERWISE = "how often does one rank's throughput go into it?"
    EFFICIENCY_IS_SPEEDUP = "this is the speed-up. Which part is that of the ideal one?"
    EFFICIENCY_OTHERWISE = "the speed-up over one rank, as a part of the ideal one: what is ideal?"
    PER_CENT = "this is in per cent; asked for is a part of 1."
    # profile
    FIRST_STEP_INCLUDED = "step 0 is in it. What is special about a first step?"
    OF_BUSY_TIME = "this is a part of the events' seconds. How long is the step itself, with its gaps and overlaps?"
    BETWEEN_STEPS = "the time between two steps is in the total. When does a step begin, and when does it end?"
    MEAN_OF_SHARES = "this is a mean of shares. Should a long step count as a short one does?"
    SECONDS_NOT_SHARE = "these are seconds. Which part of the steps are they?"
    SHARE_OTHERWISE = "the seconds of these events, as a part of the seconds of all steps after step 0."
    HIDDEN_COUNTED = "this counts all of the all-reduce. Which part costs nothing, because the rank computes meanwhile?"
    HIDDEN_PART = "this is the part that is hidden behind computing. How much is left?"
    EXPOSED_OTHERWISE = "only all-reduce in which nothing is computed counts. Draw both on one line of time."
    AFTER_THE_LAST = "only what follows the last computing counts here. What if the rank waits in the middle of a step?"
    HIDDEN_BY_INPUT = "input hides a part of the all-reduce here. Which events are said to hide it?"
    ANOTHER_BOTTLENECK = "in {case} another part has a larger share. Which one, if only exposed all-reduce counts?"
    UNKNOWN_BOTTLENECK = "the bottleneck is the name of one of the three parts."
    # predict
    NO_EXCHANGE = "the ranks do not talk here. What follows the computing?"
    NO_COMPUTING = "nothing is computed here. What precedes the all-reduce?"
    PARTS_OF_TEXTS = "a rank has whole texts. For whom do the others wait?"
    ROUNDED_DOWN = "this is the rank with the fewest texts. For whom do the others wait?"
    FIXED_DIVIDED = "the fixed part is divided too. Does more ranks make it shorter?"
    FIXED_FORGOTTEN = "the fixed part is missing."
    NOT_DIVIDED = "each rank has the whole batch here. How many texts has it?"
    ONE_MESSAGE = "this is one message. How many follow one another in a ring, and how long is each?"
    HALF_RING = "this is half of the ring. What follows the reduce-scatter?"
    OVERLAPPED = "this is the longer of computing and all-reduce, but nothing is hidden. How long do both take?"
    WHOLE_ARRAYS = "whole arrays go round the ring here. What is one message of it?"
    STEP_OTHERWISE = "the fixed part, the texts of the fullest rank, then the ring's all-reduce: which of them differs?"
    BATCH_OF_ALL = "`batch` is the global one. Why multiply?"
    ROUNDED_BATCH = "no text is added to fill up the ranks. How many texts are in a step?"
    RATE_FROM_STEP = "how many texts are in a step, and how long is it?"
    COMPUTING_SHARE = "this is the share of computing. How much faster than one rank are they, by ranks?"
    NO_POWER = "only powers of two are asked for."
    EXACTLY_ENOUGH = "an efficiency of exactly `at_least` is enough. How do you compare?"
    FEWEST_RANKS = "this is the smallest. Which is the largest?"
    ONE_TOO_FAR = "with this many the efficiency is too low, or there are not so many ranks."
    STOPS_EARLY = "twice as many are still efficient enough. Where does your search end?"
    ALL_RANKS = "with all ranks the efficiency may be too low. Compare it with `at_least`."
    MOST_OTHERWISE = "try 1, 2, 4, … ranks up to `ranks`: which is the last with enough efficiency?"


class Lab16JobHint(Hint):
    """Of `job_script`."""

    NOT_FILLED_IN = "The text still has {text} in it. Which letter before the quotes lets Python fill in the value?"
    REFUSED = (
        "sbatch refuses the line at {word!r}, which is neither an option nor its value. Where does that come from?"
    )
    NO_TEXT = "`job_script` gives the text of the script."
    NO_SHELL = "The first line does not say which shell runs the script. With which two characters does it begin?"
    NO_OPTIONS = "No line begins with #SBATCH. How does Slurm learn what you need?"
    OPTIONS_LATE = "Slurm reads no #SBATCH after the first command. What comes first?"
    NO_NODES = "the number of nodes is not said. Which option does that?"
    AN_ARRAY = "--array={tasks} makes an array of it: every task trains by itself. How many jobs are needed?"
    NODES = "--nodes={nodes} is asked for, and {expected} nodes are needed."
    NO_TASKS = "nothing says how many tasks a node gets, so it gets one. How many ranks are needed there?"
    TASKS_OF_ALL = "this many tasks are needed on all nodes together. How many on each?"
    TASKS = "the number of tasks on each node is {tasks}, and {expected} are needed."
    ALL_TASKS = "the number of tasks in all is {tasks}, and {expected} are needed."
    TASKS_UNEVEN = (
        "Slurm may divide {tasks} tasks unevenly over {nodes} nodes. Which option says how many each one gets?"
    )
    NO_CORES = "nothing says how many cores a task gets, so it gets one. Which option does that?"
    CORES = "the number of cores of a task is {cores}, and {expected} are needed."
    SRUN_FORGETS = "since Slurm 22.05 srun does not take the cores over from sbatch. Where must they be said again?"
    SRUN_CORES = "srun is told --cpus-per-task={said}. How many cores has a task?"
    NO_TIME = "there is no time limit. How long may the site's default be?"
    TIME_UNREADABLE = "Slurm does not read {text!r} as a time. How does it write hours, minutes, seconds?"
    MINUTES_AS_SECONDS = "Slurm takes the last number of {text!r} for seconds. Where must the minutes be?"
    SECONDS_AS_MINUTES = "Slurm reads {text!r} as that many minutes. In which unit is a single number?"
    MINUTES_AS_HOURS = "Slurm reads {text!r} as that many hours. What does it take three numbers for?"
    TIME = "the limit {text!r} means {minutes:g} min, and {expected} min are needed."
    NO_SRUN = "nothing starts the ranks: a script itself runs once, on the first node. Which command starts all tasks?"
    NOT_SRUN = "the ranks are not started by Slurm's own command, which knows nodes, tasks and cores. Which one is it?"
    NOT_WAITED = "srun runs in the background, and the script ends at once, and the job with it. What must come after?"
    SEVERAL_SRUN = "the script has several lines with srun. How often should the program start?"
    SRUN_IN_LOOP = "srun is in a loop. How often should the program start?"
    SRUN_TASKS = "srun is told --ntasks={tasks}. How many tasks has the job?"
    ANOTHER_PROGRAM = "srun does not start `train.py`."
    STATUS_LOST = "if `train.py` fails, the script goes on and ends as its last command does. What makes it end there?"
    STATUS_PIPED = "if `train.py` fails, the pipe ends as its last command does. Which option of `set` changes that?"
    NO_PYTHON = "`train.py` is no program by itself. What runs it?"


class Lab16ReportHint(Hint):
    """Of the form of `report`."""

    PARTS = "`report` is a dictionary with a text for each of {names}."
    EMPTY = "it is still empty."
    NO_TEXT = "it is no text. In which words would you tell another person?"
    SHORT = "it has {words}; {fewest} are the least that say something."
    LONG = "it has {count} words. The page has room for {most}; which sentences carry the result?"
    REPEATS = "it says the same words again and again."
    NO_NUMBER = "it has no number in digits. Which one did you measure, or compute?"
    TWICE = "another part has the same sentences. What is each of the two about?"
