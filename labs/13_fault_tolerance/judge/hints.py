"""What lab 13 says about wrong answers; most follow the name of a job or of a number."""

from distlab.labs.verdict import Hint


class Lab13Hint(Hint):
    """By exercise: diagnosis, cure, plan, elapsed time, comparison of intervals."""

    # Diagnosis: a wrong illness, by the right one
    NOTHING_FOUND = "`diagnose` finds no illness:"
    STRAGGLER_NOT_FOUND = (
        "nobody exits, and steps go on. How many times as long as the others must a worker compute, in how many steps, "
        "and is it one of those with which you compare it?"
    )
    UNKNOWN_ILLNESS = "{said!r} is none of the six names in `lab.given.ILLNESSES`."
    NO_WHOLE_NUMBER = '"{name}" is a whole number, like event["{name}"], not {said!r}.'
    NOT_KILLED = (
        "the first thing that goes wrong is an exit. With which code? If the job began again, did it use the newest "
        "whole checkpoint?"
    )
    NOT_STRAGGLER = "nobody exits, and steps go on. Compare the workers' computing and waiting in the last steps."
    NOT_NEVER_COMES = "nobody does a step here. Is everybody where the launcher's list says?"
    NOT_HALF_WRITTEN = "the exit was harmless: the job began again. From which step, and which checkpoints were there?"
    NOT_COME_AND_GO = "steps go on after the exit, without a new start of the job. What has changed since?"
    NOT_NOTICE = "what did the first worker that exited receive before, and what did it do alone?"
    # Diagnosis: a wrong worker or step
    KILLED_WORKER = "{said} is not the worker that was killed. Which exit came first? The launcher ended the others."
    STRAGGLER_WORKER = "{said} is not the straggler. Who is slow in every step at the end, not in one step only?"
    NEVER_WORKER = "{said} is where it should be. Whose line `listens` differs from its place in the list?"
    HALF_WRITTEN_WORKER = "{said} did not write the checkpoints. Who writes them?"
    COME_AND_GO_WORKER = "{said} is still there after the change. Who is missing in the steps after it?"
    NOTICE_WORKER = "{said} got no notice. Which worker received a signal, before anyone exited?"
    KILLED_STEP = "{said} is not the last step that the worker did before it was killed: {fact}."
    STRAGGLER_STEP = "{said} is not the first step from which on the straggler is always slow: {fact}."
    NEVER_STEP = "{said}, although no step was done: the step is 0."
    HALF_WRITTEN_STEP = "{said} is not the newest checkpoint that lacks its seal before the job began again."
    COME_AND_GO_STEP = "{said} is not the last step that the lost rank did: {fact}. The others did some steps again."
    NOTICE_STEP = "{said} is not the step that was done last when the signal came: {fact}."
    # Cure
    NO_NUMBER = "`cure` must give one number; yours gives {got}."
    NOT_A_SHARE = "a share is between 0 and 1."
    ALL_STEPS = "this uses steps in which the worker was as fast as the others. From which step on is it slow?"
    ONE_OTHER = "this counts one other worker only. How many share the batch with it?"
    KILLED_RESUME = "this is the step from which the job goes on. How many steps were done after it?"
    KILLED_UNSEALED = "this counts from a checkpoint without a seal. Which checkpoint can the job read?"
    KILLED_SAVED_AGAIN = (
        "this counts from a checkpoint that was saved after the second start. Which ones were there when the worker "
        "was killed?"
    )
    KILLED_OTHERWISE = "steps done twice are those after the newest whole checkpoint, up to the last one done."
    EVEN_SHARE = "this is the share that it has now. With it the others wait."
    SPEED_AS_SHARE = "this is its speed compared with the others'. What share is that of the sum of all speeds?"
    SHARE_OF_OTHERS = "this compares its speed with those of the others only. Does its own belong to the sum?"
    SPEED_BY_WORKERS = "its speed is divided by the number of workers, so the shares do not add up to 1."
    SHARE_UPSIDE_DOWN = "this gives the slow worker more than the others. Speed is one divided by time."
    STRAGGLER_OTHERWISE = "with the right share all workers compute equally long. Try 3 workers, one 2 times slower."
    PORT_LISTED = "this is the port in the list, where nobody listens. Where does the worker listen?"
    PORT_OTHERWISE = "the port is the number after the colon of an address of this worker."
    RESUME_BROKEN = "that checkpoint has no seal. Which is the newest one that has?"
    RESUME_AT_ZERO = "from step 0 all work is lost. Which whole checkpoints were there?"
    RESUME_OTHERWISE = "the job should go on from a checkpoint with a seal, saved before it began again: the newest."
    IMAGES_KEPT = "with as many images per rank the global batch is smaller now. Who takes over those of the lost rank?"
    IMAGES_OF_ALL = "this is the global batch. How many ranks share it after the change?"
    IMAGES_FEWER = "this makes the global batch smaller still. Do fewer ranks need more images each, or fewer?"
    IMAGES_OTHERWISE = "the images per rank times the ranks left must be the global batch of the beginning."
    SAVE_AT_ONCE = "when one worker learns of the notice, others may have begun the next step. After which do all know?"
    SAVE_OTHERWISE = "all workers learn of the notice in the sum of the next step, and save after that step."
    # Plan
    ONE_WORKER = "that is the time between faults of one worker. The job stops when any one of {count} does."
    FAULTS_RARER = "more workers would make faults rarer. Is it so?"
    NOT_IN_SECONDS = "this is not in seconds."
    BETWEEN_OTHERWISE = "if one worker fails once in so many seconds, how often does one of {count} fail?"
    TWO_FORGOTTEN = "a factor is missing under the root: a fault costs half an interval on average, not a whole one."
    NO_ROOT = "the square root is missing: look at the unit."
    INTERVAL_OF_ONE = "this uses the faults of one worker. How often is the whole job disturbed?"
    TWO_OUTSIDE = "the 2 is under the root."
    INTERVAL_OTHERWISE = "Young's interval follows from the time of a save and the time between the faults of the job."
    ROUNDED_DOWN = "this is rounded down; asked for is the nearest whole number."
    ROUNDED_UP = "this is rounded up; asked for is the nearest whole number."
    PARTS_OF_STEPS = "there are no parts of steps."
    STEPS_OTHERWISE = "how many steps fit into the interval?"
    HALF_OF_LOSS = "this is what the saves cost, or what the faults cost, which is as much. Which of them is missing?"
    WHOLE_INTERVAL = "a fault does not cost a whole interval: it comes early or late in it."
    SAVED_PER_FAULT = "a save comes once in an interval, not once between two faults."
    SAVE_IN_INTERVAL = "this counts the save as a part of the interval. The interval has seconds of work only."
    LOST_WHEN_ROUNDED = "this is what the rounded interval loses. Which interval comes before it is rounded?"
    LOST_OTHERWISE = "add what a save costs per second of an interval, and what a fault costs per second."
    # Elapsed time
    NO_SECONDS = "`elapsed` must give one number, the seconds from the start to the end; yours gives {got}."
    FIRST_START = "the first start costs nothing: the job works from second 0 on. After what does it start again?"
    HALF_INTERVALS = "this takes half an interval for each fault, as on average. When does each of these faults come?"
    NO_FAULTS = "the faults change nothing here. What does each of them cost?"
    FAULTS_ADDED = "this adds up the numbers in `faults`. Since when do these seconds count?"
    START_LOSES_WORK = (
        "a fault while the job starts again loses work here. Has the job worked since it began to start again?"
    )
    SMALL_STEPS = (
        "this is near {seconds:g} s, as with small steps of time. What happens next, and in which second exactly?"
    )
    SAVED_AT_END = "this saves once more when the work is done."
    SAVED_FIRST = "all work is done before the first save is due. Is there a save?"
    INTERVAL_WITH_SAVE = "the interval is work only. When does the next save begin, if the last one takes time as well?"
    AFTER_END = "the job is done after {seconds:g} s. Do faults after that matter?"
    START_AGAIN_DISTURBED = "each fault but the first comes during a start, also during one that has begun again."
    FAULTS_CHANGED = "the seconds are right, but `elapsed` changes its list: {left} of {count} faults are left in it."
    NO_SAVES = "the saves take no time here."
    NOTHING_LOST = "a fault loses no work here. What was done since the last complete save?"
    ALL_LOST = "a fault loses all work here, also what was saved."
    NO_RESTART = "starting again takes no time here."
    SAVE_SURVIVES = "a save that a fault interrupts counts as complete here."
    RESTART_UNDISTURBED = "a fault while the job starts again is left out here. It makes the start begin again."
    ONE_FAULT = "only the first fault counts here."
    LATER_THAN_THAT = "the job takes {seconds:g} s. Draw a line of time, and mark saves and faults."
    # Comparison
    ELAPSED_EMPTY = "`compare` calls `elapsed` of exercise 4, which gives None. Is exercise 4 done?"
    ELAPSED_MISSING = "`compare` calls `elapsed` of exercise 4, which is not defined. Run the cell of exercise 4."
    NO_MEANS = "the means must be a list with one number for each of the {count} intervals; yours are {got}."
    SUMS = "these are sums over the runs, not means."
    FIRST_RUN = "these are the seconds of one run. The mean of all runs is asked for."
    MEDIANS = "these are medians. A few runs with many faults count for the mean."
    WORK_SUBTRACTED = "these are the seconds lost. Asked for are the seconds that the job takes."
    MEANS_ANOTHER_ORDER = "these are the right means in another order. Keep the order of the intervals."
    LIST_CHANGED = "for all intervals but the first, faults are missing. Does `elapsed` change its list of faults?"
    SAVE_AND_RESTART = "save and restart are exchanged. In which order does `elapsed` take them?"
    WORK_AND_INTERVAL = "work and interval are exchanged. In which order does `elapsed` take them?"
    RUNS_JOINED = "this puts the faults of all runs into one. How many jobs are simulated with each interval?"
    ELAPSED_WRONG = (
        "`elapsed` is wrong for this run, so the means are too: {call} gives {said:.10g}, right is {true:.10g}."
    )
    MEANS_COMBINED = (
        "for an interval of {interval:g} s the mean is {mean:.6g} s. `elapsed` is right for every run: how do you take "
        "the mean?"
    )
    MEANS_OTHERWISE = "for an interval of {interval:g} s the mean is {mean:.6g} s. Does `elapsed` pass its own check?"
    BEST_NO_NUMBER = '"best" is one of the numbers in `intervals`, not {said!r}.'
    BEST_IS_INDEX = "this is the place of the interval in the list. Which interval is it?"
    BEST_IS_WORST = "with this interval the job takes longest."
    BEST_IS_MEAN = "this is the lowest mean. Which interval has it?"
    BEST_IN_MOST_RUNS = "this interval is the best in most runs. Which one has the lowest mean?"
    BEST_BY_YOUNG = (
        "this is the candidate nearest to Young's interval, which is for faults at random. Which one has the lowest "
        "mean in these runs?"
    )
    BEST_OTHERWISE = "this is not the interval with the lowest mean. The candidates are in no order."
