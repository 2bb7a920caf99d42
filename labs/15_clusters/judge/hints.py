"""What lab 15 says about wrong answers."""

from distlab.labs.verdict import Hint


class Lab15Hint(Hint):
    """By exercise: job scripts, a job that is queued again, the scaling table, what to rent."""

    # Every script
    NO_TEXT = "`{name}` is a text: the lines of a job script between triple quotation marks."
    TOO_LONG = "The script has more than {count} characters."
    EMPTY_FIRST_LINE = "The first line is empty, and sbatch wants #! there. What does the backslash in the example do?"
    REFUSED = "sbatch refuses the script, and says: {said}"
    REFUSED_TIME = (
        "sbatch refuses the script: --time={time} is {said}, and no job may take longer than {most} here. "
        "In which unit is each number?"
    )
    NOT_BASH = "The first line names {said}, and this check needs bash: #!/bin/bash."
    COMMENT_OPTION = "`{line}` is a comment for sbatch. How must a line of options begin?"
    LATE_OPTION = "`{line}` comes after the first command. What does sbatch read there?"
    NEVER_ENDS = "the script does not end. What does it wait for, or repeat?"
    STEP_REFUSED = "`{call}` fails: {said}."
    EMPTY_VALUE = "`{call}` fails: {variable} is empty there. Where does it get its value?"
    NO_PYTHON = "`{call}`: `{program}` is no command by itself. What runs a Python file?"
    VALUE_IS_PROGRAM = "`{call}` takes {word} for the program. How does an option with an optional value get it?"
    NOT_SRUN = "`{said}` starts programs by itself here. Which command of Slurm starts the ranks?"
    BASH_SAYS = "no program is started, and bash says: {said}"
    BASH_COMPLAINS = "bash says: {said};"
    AN_ARRAY = "this is an array, not one job. Which option makes it one?"
    NODES = "the job gets {count}, and should get {expected}."
    RANKS_PER_NODE = (
        "a plain srun would start {count}, and {expected} are asked for. Which option says how many per node?"
    )
    RANKS_UNEVEN = (
        "{count} ranks on {nodes} nodes may be {first} on the first one and 1 on each other. "
        "Which option says how many per node?"
    )
    NO_TIME = "there is no time limit: the default of the site decides."
    TIME = "the limit is {said}, not {expected}. What is a number without a colon, and what one with one colon?"
    TIME_OTHERWISE = "the limit is {said}, not {expected}."
    LOG_NAME = (
        "the log of job {job} is {said}, and should be {expected}: %x is {name} here. Which option names the job?"
    )
    LOG_OTHERWISE = "the log of job {job} is {said}, and should be {expected}."
    LOG = "the log of job {job} is {said}, and should be {expected}. Which two patterns begin with %?"
    # Batch job
    PROGRAMS = "it starts {said}, and should start {expected}."
    SRUN_MISSING = "`train.py` runs once, on the first node. What starts it on every node?"
    SRUN_TOO_OFTEN = "`{program}` runs {count} times, and once is enough. On which node does the script itself run?"
    RANKS = "`train.py` runs as {said}, and should run as {expected}."
    ARGUMENTS = "`{program}` gets {said}, and should get {expected}."
    ARGUMENTS_SPLIT = "an argument with a space in it becomes two. What do quotation marks around $@ change?"
    GOES_ON = "`{program}` fails, and `{after}` is started all the same."
    STATE_COMPLETED = "`{program}` fails, and the script ends with 0, so the state is COMPLETED. Whose status counts?"
    FAILS_ALWAYS = "no program fails, and the script ends with status {status}."
    OTHERS_WAIT = "one rank fails, and the others wait for it until the time is over. Which option of srun ends them?"
    OTHERS_GO_ON = "one rank fails, and the others go on for {count}. Which option of srun ends them at once?"
    PROGRAMS_FIRST = "this needs the right programs first."
    # Array
    NO_FOLDER = "the log of a task is {said}: without the folder {folder} the script does not begin. Who makes it?"
    CANCELS = "`{call}`: what is cancelled has the state CANCELLED, not FAILED. Which other runs does it end?"
    NO_ARRAY = "this is one job, not an array."
    ARRAY_NODES = "each task has {count}, so that {size} nodes are never there. How many does the largest run need?"
    ARRAY_TOO_MANY_NODES = "each task holds {count}. How many does the largest run need?"
    AT_ONCE = "{count} may run at the same time, and disturb one another. What does % do in --array?"
    ONE_LOG = "two of its tasks, or of two such arrays, write into one log, {said}. Which patterns tell them apart?"
    ALL_IN_ONE = "one job trains {count} sizes one after the other: if one fails, what happens to those after it?"
    NO_TRAINING = "task {task} of the array trains {count} times."
    SIZES = "the array trains on {said} nodes, and should on {expected}. What is the number of a task for?"
    ARRAY_RANKS = "task {task} runs train.py as {said}. srun takes both its numbers from the job unless you give both."
    RESULT = "the run on {nodes} gets {said}, and should get {expected}."
    TASK_COMPLETED = "train.py fails, and the task's script ends with 0: nobody sees that its result is missing."
    # Long job
    NO_NOTICE = "no signal comes before the limit."
    NOTICE_TO_SCRIPT = "with B: only the script gets the signal. Who has to save?"
    NOTICE_SIGNAL = "the signal has number {number}, and train.py waits for USR1, which has 10."
    NOTICE_SECONDS = "the signal comes {count} seconds before the limit, not {expected}. In which unit is it?"
    NOTICE_OTHERWISE = "the signal comes {count} seconds before the limit, not {expected}."
    NO_REQUEUE = "if a node dies, the default of the site decides what happens. Which option decides it here?"
    LOG_OVERWRITTEN = "each attempt overwrites the log of the one before. Which option appends to it?"
    NOT_QUEUED = "train.py ends with 85, and nothing puts the job back into the queue. Does the script get that far?"
    NOT_QUEUED_OTHER = "train.py ends with 85, and the number 85 is not in the script. For which status does it look?"
    NOT_QUEUED_LOST = (
        "train.py ends with 85, and nothing puts the job back into the queue; the script ends with {said}. "
        "Whose status does it look at?"
    )
    HELD = "`{call}` does not start the job again by itself. Which subcommand of scontrol only puts it back?"
    QUEUED_ALWAYS = "train.py ends with {status}, and the job is queued again. Which status asks for that?"
    WRONG_JOB = "`{call}` does not name this job, which is {job}. Which variable has its number?"
    NEW_JOB = "sbatch submits another job, with another number and log. Which command puts this one back?"
    STATUS_LOST = "train.py ends with {status}, and the script with {said}. When does a script still know it?"
    WAITS_TOO_SHORT = (
        "{count} after the first rank has ended, srun ends the others with 137. How much later may they end?"
    )
    KILLS_SAVERS = "the first rank that ends with 85 takes the others with it. Which option of srun does that?"
    # The job that is queued again
    SAVES_ALONE = (
        "some ranks go on, and others save, wait or end: their sums no longer match. By which number do all decide?"
    )
    NOT_MET = "rank {rank} waits in `add_up` for rank {peer}, which has ended. Which ranks must call it?"
    NO_STATUS = "the attempt ends with {said} on rank {rank}. A rank gives its exit status, a whole number."
    STATUS_0 = "after the save rank {rank} ends with {said}. Which status asks for the queue?"
    STATUS_85 = (
        "all steps are done, and rank {rank} ends with {said}, so the job is queued again. Which status ends it?"
    )
    STEP_LOST = "step {step} is never done: the attempt after step {saved} begins with step {said}."
    STEP_TWICE = "step {step} is done again: the attempt after step {saved} begins with step {said}."
    STEPS_ORDER = "the steps are {said}, and should be {expected}."
    TOO_LATE = "a notice comes in step {step}, and the last step is {said}. After which step does everybody know of it?"
    TOO_EARLY = "it ends after step {said}, and nobody has had a notice before step {step}."
    LAST_MISSING = "it ends after step {said}, and the job has {steps} steps: the last one is missing."
    NEVER_DONE = "step {step} is done again and again. What changes the number of the step?"
    ADDED_BEFORE = "before step {step} the ranks add something up. When do they ask how many have a notice?"
    NOT_AT_ONCE = "no step is left at the beginning, and the ranks still call something. What do they return at once?"
    TOO_MANY_STEPS = "step {step} is done, and the job has {steps}. When is no step left?"
    SAVED_WITHOUT_NOTICE = "it is saved after step {step}, and no rank has a notice then. What is the reason to save?"
    NOT_SAVED = "nothing is saved before the attempt ends."
    SAVED_OFTEN = "it is saved {count} times in one attempt. When is one save enough?"
    SAVED_BY_OTHERS = "rank {rank} writes a checkpoint, too. Who writes it?"
    SAVED_STEP = "step {said} is written into the checkpoint, and the last step done is {step}."
    SAVED_AT_END = "all steps are done, and a checkpoint is written. What is left to do?"
    GUESSED = (
        "rank {rank} only lets {seconds:g} s pass, and a save may take longer. "
        "What makes a rank wait until rank 0 has saved?"
    )
    LEFT_EARLY = "rank {rank} ends while rank 0 is still writing. What makes a rank wait for the others?"
    # Scaling table
    NO_TABLE = "`read_table` gives a dictionary with the names {names}."
    NO_LIST = "this is a list of numbers."
    FAILED_TRUSTED = "run {place} has the state {state}."
    DISTURBED_TRUSTED = "run {place} was not alone: run {peer} ran at the same time."
    TRUSTED_LEFT_OUT = "run {place} is left out: it is complete, and nothing else ran between its start and its end."
    TRUSTED_FROM_1 = "these are counted from 1. Which number has the first run of the list?"
    TRUSTED_ORDER = "these are numbers of runs in the list, from 0, in increasing order."
    NO_BASE = (
        "Every study has a trusted run on one node. A run that begins in the second in which another ends was alone: "
        "is such a run in your list?"
    )
    TABLE_LENGTH = "{count} numbers for {expected} trusted runs: one for each, in order of nodes."
    TABLE_ORDER = "these are the right numbers in another order. Which run has the fewest nodes?"
    TIMES_RATIO = "this compares the times of a step only. How many images does each step work on?"
    BATCH_LEFT_OUT = "the batches of the runs differ. How many images does a node work on in a step of each run?"
    UPSIDE_DOWN = "this is upside down: more images per second make a larger number."
    EFFICIENCY_IS_SPEEDUP = "this is the speed-up. What part of the ideal one is it?"
    SPEEDUP_OTHERWISE = (
        "for {nodes} the speed-up is {said:.4g}. How many images per second are that, and how many on one?"
    )
    EFFICIENCY_OTHERWISE = "for {nodes} the efficiency is {said:.3g}: the speed-up over the number of nodes."
    PAYS_OVERALL = "this looks at the efficiency of all nodes. What do those bring that were added last?"
    PAYS_LATER = "this is the last size that pays, but a smaller one did not. Where would you stop?"
    PAYS_NEXT = "this is the first size that does not pay. Which was the last that did?"
    PAYS_HALF = "nodes that bring exactly half pay, too. How do you compare?"
    PAYS_FASTEST = "this is the fastest run. Are its last nodes worth it?"
    PAYS_OTHERWISE = (
        "{said} is not the last size up to which every enlargement pays. Compare each size with the one before."
    )
    # Rent
    NO_CHOICE = "`rent` gives a dictionary with the names {names}, or None if nothing ends in time."
    NO_CHOICE_TYPE = "`{name}` is {said}, and should be {expected}."
    NOTHING_RAISES = "nothing ends in time here: then give None."
    NOTHING_FITS = "this ends too late, or costs more than it could: nothing here ends in time. Then give None."
    SOMETHING_FITS = "`rent` gives None, and {said} ends in time."
    RENT_NO_EFFICIENCY = "this counts every node as fully used. What does the efficiency do to the images per second?"
    RENT_EFFICIENCY_DIVIDES = "a lower efficiency makes the nodes faster here. Multiply or divide by it?"
    RENT_NO_WAIT = "the time in the queue is left out."
    RENT_ONE_WAIT = "the queue is waited for once here. How often is a job there that takes longer than the limit?"
    RENT_MORE_WAITS = "this waits once too often: a run as long as the limit is one job."
    RENT_WAIT_PAID = "the time in the queue is paid for here. Who uses the nodes then?"
    RENT_ONE_NODE = "this is the price of one node."
    RENT_LARGEST = "only the largest number of nodes of each offer is considered here. Which smaller ones end in time?"
    RENT_SMALLEST = "only the smallest number of nodes of each offer is considered here. Which larger ones end in time?"
    RENT_WHOLE_LIMIT = "this pays for the whole limit. Are nodes given back when a job ends?"
    RENT_LIMIT_FORBIDS = "longer runs than the limit are left out here. What does a job do that can be queued again?"
    RENT_FASTEST = "this is the one that ends first. Which is the cheapest that ends in time?"
    RENT_CHEAPEST = "this is the cheapest, and it ends too late."
    RENT_DEADLINE = "an offer that ends exactly at the deadline is left out. Is that in time?"
    RENT_UNITS = "the numbers are {factor} times too large or too small. Images are per second, prices per hour."
    RENT_CHOICE = "{said} is not the cheapest of those that end in time."
    RENT_DONE = "{said:.6g} h until the end: the run, and each time in the queue."
    RENT_COST = "{said:.6g} euros: price per node and hour, times nodes, times the hours of the run."
