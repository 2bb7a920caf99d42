"""What lab 08 says about wrong answers; most follow the name of a part and a case."""

from distlab.labs.verdict import Hint


class Lab08Hint(Hint):
    """By exercise: staleness, the rule of a bounded lead, its limits, the choice for a cluster, shares."""

    # Staleness
    NO_STALENESS = (
        "`staleness` must give a list with one whole number for each of the {count} updates; yours gives {got}."
    )
    OWN_UPDATE = "this counts the worker's own update, too. Whose updates make a gradient stale?"
    SINCE_THE_BEGINNING = "this counts all updates before it. Since when did this worker not look at the weights?"
    READS_COUNTED = "this counts reads, too. Which events change the weights?"
    WORKERS_COUNTED = "this counts the workers that updated in between. What if one of them did so twice?"
    MEAN_ASSUMED = (
        "that is the mean for workers that never pause. How many updates were there between these two events?"
    )
    STALENESS_OTHERWISE = "count for each update which updates stand between it and the same worker's read before it."
    # The rule
    NO_TRUTH_VALUE = "`may_begin` gives True or False, not {value!r}."
    ALWAYS_THE_SAME = "it is {value} in every state. When must a worker wait, and when not?"
    ONE_LESS = "a worker that is ahead by exactly the lead waits here. Is that more than the lead?"
    ONE_MORE = "a worker may be ahead by one more than the lead here."
    AGAINST_FASTEST = "this makes the slow workers wait. Who is too far ahead of whom?"
    AGAINST_FASTEST_OTHER = "this compares with the fastest of the others. Whose gradient would become too stale?"
    AGAINST_MIDDLE = "this compares with the worker in the middle. Whose gradient would become too stale?"
    AGAINST_MEAN = "this compares with the mean of all workers. Whose gradient would become too stale?"
    LEAD_TOO_SMALL = "{case} may begin: it is ahead by {ahead}, which is allowed."
    ALONE = (
        "with {finished} gradients finished and a lead of {lead}, a single worker may begin. Whom could it wait for?"
    )
    LEAD_TOO_LARGE = "{case} must wait: it is ahead by {ahead}."
    # Limits
    LEAD_ITSELF = "the lead is a limit for two workers. How many updates of all others fit into one gradient?"
    LEAD_OF_0 = (
        "with a lead of 0 all workers read the same weights. When the first update has changed them, with which "
        "weights do the others still compute?"
    )
    NO_OTHERS = "there is one worker only. Whose updates make its gradients stale?"
    WAITS_FOR_NOBODY = "there is one worker only, which waits for nobody. How many gradients does it send in a second?"
    NO_LEAD = "the lead is not in it. What else may the others do while A computes, when the lead is larger?"
    BY_SPEEDS = "it changes with `seconds`. What does the rule alone allow, however fast the others are?"
    ONE_SIDE = "another worker may be ahead at the end, and it may be behind at the beginning: how many updates in all?"
    IN_FLIGHT = "at its limit a worker may still begin one gradient. Is its update counted?"
    ALL_WORKERS = "a worker's own updates do not make its gradients stale."
    MEAN_FOR_LARGEST = "that is the mean of workers that never pause, or the limit for a lead of 0."
    ONE_OTHER = "this counts the updates of one other worker. How many others are there?"
    STALENESS_LIMIT_OTHERWISE = (
        "write down the events for 2 workers and a lead of 1, then for 3 workers and a lead of 0. Between A's read and "
        "A's update, how many updates of others can there be?"
    )
    SLOWEST_PACE = "this is the pace of the slowest. Who waits for it without a bound?"
    FASTEST_PACE = "this takes every worker for the fastest one."
    MEAN_SECONDS = "the mean of the seconds is not what counts: a fast worker sends more gradients. Add up the rates."
    MEAN_UNDER_BOUND = "this takes the mean of the seconds. For whom do the fast workers wait in the end?"
    SECONDS_NOT_RATE = "these are seconds. Asked for are gradients per second."
    RATE_OF_ONE = "this is one worker's rate. How many send gradients?"
    UNBOUNDED_RATE = "that is the rate without a bound. After the first gradients, for whom do the fast workers wait?"
    LEAD_EACH_TIME = "the lead can be used up only once. After that, for whom do the fast workers wait?"
    LEAD_DIVIDES = "with a larger lead everybody would be slower here. Who waits for whom, and how often?"
    NEAR_THE_RATE = "this is near, as a long simulation is. Which formula does it come near to?"
    RATE_OTHERWISE = "in a long time, how many gradients does each worker send, and who waits for whom?"
    # Choice
    RATE_OF_EXCLUDED = (
        "the rate of {way} is missing. This way is out here, and has a rate all the same: give all three."
    )
    NOT_A_WAY = "the choice is one of synchronous, backup workers, asynchronous, not {said!r}."
    RATE_OF = "the rate of {way} is {said:.6g}, and not right:"
    SLOWEST_ON_AVERAGE = "a step takes as long as its own slowest worker, and that is not always the same one."
    MEAN_WORKER = "this step waits for a worker of mean speed. For whom does a step wait?"
    MEAN_OF_STEPS = (
        "this is the mean of the steps' rates, and a slow step takes more of the time. Divide all gradients by all "
        "seconds."
    )
    ALL_REDUCE_ONCE = "the all-reduce is added once. How many steps have one?"
    ALONG_THE_STEPS = "this compares different steps of one worker. What is a row of `seconds`, and what is a column?"
    SYNCHRONOUS_DROPS = "this drops gradients. Which of the three ways does that?"
    ALL_REDUCE_FORGOTTEN = "the all-reduce is missing in each step."
    STEPS_NOT_GRADIENTS = "these are steps per second. How many gradients does a step apply?"
    DROPPED_COUNTED = "a step drops some of the gradients. How many does it apply?"
    NO_BACKUP = "this step waits for all workers. For how many does it wait?"
    ONE_TOO_EARLY = "this step ends before its last gradient is there. At which place is that, if one counts from 0?"
    LATE_GOES_ON = "a worker whose gradient is dropped goes on with it here. When does it begin the next step?"
    SHAPE_EXCHANGED = "the numbers of steps and of workers are exchanged. Which of them is first in `seconds.shape`?"
    FIRST_WORKERS = "the backup workers are not always the same ones: a step drops those that come last."
    SERVER_FORGOTTEN = "the workers send that many gradients, and one server cannot apply them so fast."
    SERVER_ALONE = "this is what the server can do. Do the workers send as many?"
    MEAN_OF_ALL = "a fast worker sends more gradients: take each worker's rate, then add up."
    WAITS_IN_ASYNCHRONOUS = "nobody waits for the slowest here."
    SORTED_IN_PLACE = "it comes from sorted rows. Was `seconds` sorted in place, and whose times are in a column now?"
    NO_ALL_REDUCE_HERE = "there is an all-reduce in it. To whom does a worker send its gradient here?"
    SERVER_PER_WORKER = "the server needs `server` seconds for one gradient here, not for one of every worker."
    BACKUPS_KEPT = "this step takes as many gradients as there are backups. So many are dropped: how many does it take?"
    SERVER_ADDED = (
        "this adds the server's time to that of the gradients. The workers compute meanwhile: what does it limit?"
    )
    STEPS_OTHERWISE = "simulate three steps of two workers on paper."
    BACKUP_OTHERWISE = "simulate three steps of three workers on paper, which drop the last gradient."
    ASYNCHRONOUS_OTHERWISE = "there are no steps here. How many gradients does each worker send in a second?"
    TOO_STALE = "asynchronous gradients are too stale here: what is their mean staleness, and what is allowed?"
    ALWAYS_DROPPED = "a worker is dropped in most steps, and its data are lost. Which way keeps them?"
    BETTER_WAY = "the rate of {best} is higher, {best_rate:.4g} instead of {rate:.4g}, and this way is not out here:"
    STALENESS_ALLOWED = (
        "what is the mean staleness of {workers} workers that never pause, and is it more than {allowed:g}?"
    )
    BUSY_SERVER_ALLOWED = "the server is always busy, and this limits the rate. Is it a reason to rule the way out?"
    DROPPING_ALLOWED = "no worker is dropped in more than {dropped} of {steps} steps. When would it be out?"
    ALWAYS_ALLOWED = "which rule could exclude it?"
    # Shares
    NO_SHARES = (
        "`next_shares` must give a list with one whole number for each of the {count} workers; yours gives {got}."
    )
    NOT_WHOLE = "worker {worker} gets {share:.6g} images. Which whole number of images should it get?"
    SUM_CHANGED = "the shares {said} have {total} images together, and the step has {images}."
    WITHOUT_IMAGES = "worker {worker} has {share} images. Each worker needs one, or nobody knows how fast it is."
    TOO_MANY_DIVISIONS = (
        "{error}. There are {divisions:,} ways to divide {images} images among {workers} workers: does it try them "
        "all, or does a loop never end?"
    )
    SHARES_KEPT = (
        "{said}: nothing has changed, and the last worker still ends after {seconds:.5g} s, but {best:.5g} s is "
        "possible. Who could take one of its images, and end earlier with it?"
    )
    SLOWER_THAN_BEFORE = (
        "{said}: this step takes {seconds:.5g} s, and the one before took {before:.5g} s. Who should get less?"
    )
    SECONDS_FOR_SPEED = "{said}: this takes 1 / seconds for the speed. Did all have the same number of images?"
    NOT_THE_SHORTEST = (
        "{said}: this helps, but the last worker ends after {seconds:.5g} s, and {best:.5g} s is possible. Give the "
        "images out one by one: to whom goes the next?"
    )
