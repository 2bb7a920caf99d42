"""What lab 08 says about wrong answers; most follow the name of a part and a case."""

from distlab.labs.verdict import Hint


class Lab08Hint(Hint):
    """By exercise: staleness, the rule of a bounded lead, its limits, the choice for a cluster, shares."""

    # Staleness
    NO_STALENESS = "`staleness` gives a list with one whole number for each of the {count} updates."
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
    AGAINST_MEAN = "this compares with the mean of all workers. Whose gradient would become too stale?"
    LEAD_TOO_SMALL = "{case} may begin: it is ahead by {ahead}, which is allowed."
    LEAD_TOO_LARGE = "{case} must wait: it is ahead by {ahead}."
    # Limits
    LEAD_ITSELF = "the lead is a limit for two workers. How many updates of all others fit into one gradient?"
    ONE_SIDE = "another worker may be ahead at the end, and it may be behind at the beginning: how many updates in all?"
    IN_FLIGHT = "at its limit a worker may still begin one gradient. Is its update counted?"
    ALL_WORKERS = "a worker's own updates do not make its gradients stale."
    MEAN_FOR_LARGEST = "that is the mean of workers that never pause, or the limit for a lead of 0."
    ONE_OTHER = "this is for one other worker. How many are there?"
    STALENESS_LIMIT_OTHERWISE = "try 2 workers and a lead of 0: A reads. What can B do before A's update?"
    SLOWEST_PACE = "this is the pace of the slowest. Who waits for it without a bound?"
    FASTEST_PACE = "this takes every worker for the fastest one."
    MEAN_SECONDS = "the mean of the seconds is not what counts: a fast worker sends more gradients. Add up the rates."
    MEAN_UNDER_BOUND = "this takes the mean of the seconds. For whom do the fast workers wait in the end?"
    SECONDS_NOT_RATE = "these are seconds. Asked for are gradients per second."
    SLOWEST_ALONE = "this is one worker's rate. How many send gradients?"
    UNBOUNDED_RATE = "that is the rate without a bound. After the first gradients, for whom do the fast workers wait?"
    RATE_OTHERWISE = "in a long time, how many gradients does each worker send, and who waits for whom?"
    # Choice
    NO_CHOICE = "`choose` gives a dictionary with the names synchronous, backup workers, asynchronous and choice."
    NOT_A_WAY = "the choice is one of synchronous, backup workers, asynchronous, not {said!r}."
    RATE_OF = "the rate of {way} is {said:.6g}, and not right:"
    SLOWEST_ON_AVERAGE = "a step takes as long as its own slowest worker, and that is not always the same one."
    MEAN_WORKER = "this step waits for a worker of mean speed. For whom does a step wait?"
    ALL_REDUCE_FORGOTTEN = "the all-reduce is missing in each step."
    STEPS_NOT_GRADIENTS = "these are steps per second. How many gradients does a step apply?"
    DROPPED_COUNTED = "a step drops some of the gradients. How many does it apply?"
    NO_BACKUP = "this step waits for all workers. For how many does it wait?"
    FIRST_WORKERS = "the backup workers are not always the same ones: a step drops those that come last."
    SERVER_FORGOTTEN = "the workers send that many gradients, and one server cannot apply them so fast."
    SERVER_ALONE = "this is what the server can do. Do the workers send as many?"
    MEAN_OF_ALL = "a fast worker sends more gradients: take each worker's rate, then add up."
    WAITS_IN_ASYNCHRONOUS = "nobody waits for the slowest here."
    BACKUPS_KEPT = "this step takes as many gradients as there are backups. So many are dropped: how many does it take?"
    SERVER_ADDED = (
        "this adds the server's time to that of the gradients. The workers compute meanwhile: what does it limit?"
    )
    STEPS_OTHERWISE = "simulate three steps of two workers on paper."
    BACKUP_OTHERWISE = "simulate three steps of three workers on paper, which drop the last gradient."
    ASYNCHRONOUS_OTHERWISE = "there are no steps here. How many gradients does each worker send in a second?"
    TOO_STALE = "asynchronous gradients are too stale here: what is their mean staleness, and what is allowed?"
    ALWAYS_DROPPED = "a worker is dropped in most steps, and its data are lost. Which way keeps them?"
    NOT_THE_FASTEST = "another way that this cluster allows applies more gradients per second."
    # Shares
    NO_SHARES = "`next_shares` gives a list with one whole number for each of the {count} workers."
    SUM_CHANGED = "the shares {said} have {total} images together, and the step has {images}."
    WITHOUT_IMAGES = "worker {worker} has {share} images. Each worker needs one, or nobody knows how fast it is."
    SHARES_KEPT = "{said}: nothing has changed, and the slowest worker still needs {seconds:.3g} s."
    SLOWER_THAN_BEFORE = (
        "{said}: this step takes {seconds:.5g} s, and the last one {before:.5g} s. Who should get less?"
    )
    SECONDS_FOR_SPEED = "{said}: this takes 1 / seconds for the speed. Did all have the same number of images?"
    NOT_THE_SHORTEST = (
        "{said}: this helps, but the slowest takes {seconds:.5g} s, and {best:.5g} s is possible. Give the images out "
        "one by one: to whom goes the next?"
    )
