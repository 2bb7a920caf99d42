# %% [markdown]
# # Lab 13: six sick jobs, and how often to save
#
# **Goal.** Find out from its log what ails a job, which worker and which step are concerned, and what cures it. Choose
# the interval between checkpoints, and show by simulation that it is the best.
#
# **Time.** 50 minutes for exercises 1 and 3, and 50 more for exercises 2, 4 and 5, which are optional.
#
# **Before this.** [Chapter 13](../../notebooks/13_fault_tolerance.ipynb).
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it: it says what is
# wrong, with a hint. `make check LAB=13` does the same in a terminal. Nothing is trained here, and TensorFlow is not
# needed. A full solution is next to this file, in [solution.ipynb](solution.ipynb).

# %%
import numpy as np

from distlab import labs

lab = labs.open("13")

# %% [markdown]
# ## 1. Six sick jobs
#
# Six synchronous jobs have written logs. Each job has a different one of the six faults of chapter 13. A log has an entry
# for every **event**:
#
# | `event` | What happened | More in the entry |
# |---|---|---|
# | `cluster` | the launcher started the job, with this list of addresses in TF_CONFIG | `addresses`: that of worker 0 first |
# | `listens` | a worker has started and waits for the others | `worker`, `address` |
# | `step` | a worker has done a step; `computing` and `waiting` for the others took so many seconds | `worker`, `step`, `images`, `computing`, `waiting` |
# | `saved` | a worker, usually the chief (worker 0), has saved a checkpoint; one that is damaged has no seal | `worker`, `step`, `sealed` (True or False) |
# | `signal` | a worker receives a signal: 10 is SIGUSR1, 15 is SIGTERM | `worker`, `signal` |
# | `exit` | a worker has ended; −9: killed by SIGKILL, −15: by SIGTERM, 85: "start me again" | `worker`, `code` |
# | `size` | an elastic job goes on with this number of ranks | `workers` |
# | `restored` | all workers now go on after this step; 0 means that they begin from the start | `worker`, `step` |
#
# Not every unusual event is the cause. A launcher ends all others when a worker is killed, or when it sees no step for
# four minutes; an exit with 85 is no error to it. An elastic job goes on instead. One slow step, or one bad checkpoint before a good one, harms nobody.
# In these logs a job is started again at most once, after a worker was killed; that a job goes on rightly is no illness.
#
# Read the logs. A step has one line here: `2: 58+2` says that worker 2 computed for 58 ms and waited for 2 ms.

# %%
for letter in "ABC":
    print(lab.given.described(letter), end="\n\n")

# %%
for letter in "DEF":
    print(lab.given.described(letter), end="\n\n")

# %% [markdown]
# Write down what you think. Then write a function that finds it in **any** such log. `lab.given.LOGS["A"]` is the log
# of job A, as your function gets it: a list of dictionaries in the order of time. This function reads it for you:


# %%
def events(log, name, **values):
    """The events of this name and with these values up to "restored": faults came before."""
    names = [event["event"] for event in log]
    log = log[: names.index("restored") + 1] if "restored" in names else log
    wanted = {"event": name, **values}
    return [event for event in log if wanted.items() <= event.items()]


# %%
log = lab.given.LOGS["A"]
print(events(log, "listens"))
print([(event["worker"], event["code"]) for event in events(log, "exit")])
print("steps of worker 1:", [event["step"] for event in events(log, "step", worker=1)])
print("good checkpoints:", [event["step"] for event in events(log, "saved", sealed=True)])
print(*lab.given.ILLNESSES, sep="\n")

# %% [markdown]
# `diagnose(log)` gives a dictionary:
#
# | `"illness"` | `"worker"` | `"step"` |
# |---|---|---|
# | a worker is killed | the one that SIGKILL ended, for which the launcher ended the others | the last step that it did before |
# | a straggler | the slow one | the first step from which on it is slow in every step to the end of the log: at least twice as long as the median of the others (one slow step of another worker does not change that), in three steps or more |
# | a worker that never comes | the one for which the others look at a wrong address | 0 |
# | a half-written checkpoint (the job was started again, and did not use the newest whole one; if it did, the illness is that a worker was killed) | 0, who wrote it | that of the newest checkpoint before the second start; it has no seal |
# | ranks come and go | the rank that the job lost | the last step that this rank did |
# | a notice (a signal before anything went wrong) that only one worker followed | the one that received it | the last step that it did |
#
# The check uses the six logs and others that you do not see, with other numbers, workers and checkpoints. One point for
# each illness, if all three are right in each of its logs. Begin with one illness: the check says which ones are right.


# %% answer="diagnose"
def diagnose(log: list[dict]) -> dict:
    """What ails a job, which worker and which step are concerned."""
    ### BEGIN SOLUTION
    addresses = log[0]["addresses"]
    names = ("exit", "signal", "saved", "step")
    exits, signals, saves, steps = (events(log, name) for name in names)
    if not steps:
        listen = events(log, "listens")
        (lost,) = [each for each in listen if each["address"] != addresses[each["worker"]]]
        worker = lost["worker"]
        return {"illness": "a worker that never comes", "worker": worker, "step": 0}
    last_step = steps[-1]["step"]  # of every worker, since the job is synchronous
    if events(log, "size"):
        return {
            "illness": "ranks come and go",
            "worker": exits[0]["worker"],
            "step": last_step,
        }
    for restored in events(log, "restored"):
        if restored["step"] != max(save["step"] for save in saves if save["sealed"]):
            return {
                "illness": "a half-written checkpoint",
                "worker": 0,
                "step": saves[-1]["step"],
            }
    if signals and signals[0]["second"] < exits[0]["second"]:
        return {"illness": "a notice", "worker": signals[0]["worker"], "step": last_step}
    if exits:
        return {
            "illness": "a worker is killed",
            "worker": exits[0]["worker"],
            "step": last_step,
        }
    normal, last_fast = np.median([event["computing"] for event in steps]), []
    for worker in range(len(addresses)):
        own = events(log, "step", worker=worker)
        fast = [event["step"] for event in own if event["computing"] < 2 * normal]
        last_fast.append(max(fast, default=0))
    worker = last_fast.index(min(last_fast))
    return {"illness": "a straggler", "worker": worker, "step": 1 + last_fast[worker]}
    ### END SOLUTION


# %% [markdown]
# ## 2. The cure (optional)
#
# What cures a job has a number in it, which is in the log. `cure(log, illness, worker, step)` gets the right diagnosis,
# whatever your function in exercise 1 says, and gives that number:
#
# | Illness | Cure | Number |
# |---|---|---|
# | a worker is killed | start the job again from the newest checkpoint with a seal, or from the beginning if there is none | how many steps are done a second time |
# | a straggler | shares by speed | the share of the global batch that the straggler should get, between 0 and 1; all other workers are equally fast, and with the right shares all of them compute equally long |
# | a worker that never comes | correct the list of addresses | the port that the list should have for this worker |
# | a half-written checkpoint | choose the newest checkpoint that is whole; in these logs there is one | the step after which the job should have gone on |
# | ranks come and go | keep the global batch | the images that each rank that is left should have in a step (a whole number here) |
# | a notice | agree, then save together: after each step all workers add up who has a notice, as in section 8 of the notebook | the step after which all workers save: the first one whose sum contains this notice. The signal came after the sum of the last step that was done |
#
# Target: right for any log; the straggler's share to a relative error of 3 %, because computing times vary a little,
# and any worker may have a slow step. One point for each illness.


# %% answer="cure"
def cure(log: list[dict], illness: str, worker: int, step: int) -> float:
    """The number that cures this job."""
    ### BEGIN SOLUTION
    whole = [event["step"] for event in events(log, "saved", sealed=True)]
    workers = len(log[0]["addresses"])
    if illness == "a worker is killed":
        return step - max(whole, default=0)
    if illness == "a straggler":
        late = [event for event in events(log, "step") if event["step"] >= step]
        slow = np.median([event["computing"] for event in late if event["worker"] == worker])
        normal = np.median([event["computing"] for event in late if event["worker"] != worker])
        return (1 / slow) / (1 / slow + (workers - 1) / normal)
    if illness == "a worker that never comes":
        (own,) = events(log, "listens", worker=worker)
        return int(own["address"].split(":")[1])
    if illness == "a half-written checkpoint":
        return max(whole)
    if illness == "ranks come and go":
        images = events(log, "step")[0]["images"]
        return images * workers / (workers - 1)
    return step + 1
    ### END SOLUTION


# %% [markdown]
# ## 3. How often to save
#
# A job has `workers` workers. One worker fails once in `days` days on average, independently of the others. Every fault
# of any worker stops the whole job, so it is stopped `workers` times as often. A save takes `save` seconds, a step `step` seconds. Give
#
# - **between faults**: the mean seconds between two faults of the job, $M$;
# - **interval**: the seconds between two saves with which the least time is lost, by Young's formula
#   ([chapter 13](../../notebooks/13_fault_tolerance.ipynb), section 2);
# - **steps**: this interval in steps, rounded to the nearest whole number;
# - **lost**: the share of the time that is lost with Young's interval, before it is rounded: the share that the saves
#   cost and the share that the faults cost. One save is lost per interval; divide by the interval alone, which is
#   seconds of work, and leave the save out of it. Half an interval is lost per fault, on average. (Starting again is not
#   counted here.)
#
# Target: right for any job. One point for each number. For example

# %%
print(lab.target("plan"))


# %% answer="plan"
def plan(workers: int, days: float, save: float, step: float) -> dict[str, float]:
    """The four numbers, by name."""
    answer = dict.fromkeys(("between faults", "interval", "steps", "lost"))
    ### BEGIN SOLUTION
    between_faults = days * 24 * 3600 / workers
    interval = np.sqrt(2 * save * between_faults)
    answer["between faults"] = between_faults
    answer["interval"] = interval
    answer["steps"] = round(interval / step)
    answer["lost"] = save / interval + interval / 2 / between_faults
    ### END SOLUTION
    return answer


# %% [markdown]
# ## 4. Simulate a disturbed job (optional)
#
# Young's formula is an approximation: is its interval really the best? Simulate a job, with these rules:
#
# - The job needs `work` seconds of work. After every `interval` seconds of work it saves, which takes `save` seconds.
# - When all work is done, the job ends at once, without a last save, also if the work is a whole number of intervals.
# - A fault loses all work since the last *complete* save. If it comes during a save, that save is not complete.
# - After a fault the job starts again, which takes `restart` seconds, and goes on from the last complete save, or from
#   the beginning if there is none. A fault during these seconds makes the start begin again.
# - `faults` lists when the faults come: seconds since the job began, in increasing order. Faults after the end do not
#   matter. Leave the list as it is: exercise 5 uses it again for other intervals.
# - No fault comes at the very moment at which a save, a start or the work ends.
#
# The runs of exercise 5 last for days: go from event to event, not from second to second.
#
# `elapsed` gives the seconds from the beginning to the end. Target: right to one part in a million. A point each for
# runs without a fault before the end, and for faults while the job computes, while it saves, and while it starts again.
# For example

# %%
print(lab.target("elapsed"))

# %% [markdown]
# In the example the first fault interrupts the first save, so the job is at 0 again, and works from second 16 on. The
# second fault comes 2 seconds after the next save.


# %% answer="elapsed"
def elapsed(
    work: float,
    interval: float,
    save: float,
    restart: float,
    faults: list[float],
) -> float:
    """The seconds until the work is done."""
    ### BEGIN SOLUTION
    now = done = 0.0
    coming = [*faults, np.inf]
    while True:
        remaining = work - done
        is_last = remaining <= interval
        end = now + remaining if is_last else now + interval + save
        while coming[0] < now:  # it came before
            coming = coming[1:]
        if coming[0] >= end:
            if is_last:
                return end
            now, done = end, done + interval
            continue
        now = coming[0] + restart
        while coming[1] < now:  # while it starts again
            coming = coming[1:]
            now = coming[0] + restart
    ### END SOLUTION


# %% [markdown]
# ## 5. Which interval is the best? (optional)
#
# `runs` has one list of faults for each simulated run; the times between two faults are random. `compare` simulates
# every run with every candidate in `intervals`, by your `elapsed` of exercise 4, which must be right. It gives a
# dictionary:
#
# - `"means"`: a list with one number for each interval, in the order of `intervals`: the mean of `elapsed` over all
#   runs;
# - `"best"`: the interval with the lowest mean.
#
# The check uses many runs with about 40 faults each. When you are done, it prints your means next to the exact
# expectation (Daly, [doi:10.1016/j.future.2004.11.016](https://doi.org/10.1016/j.future.2004.11.016), 2006), so that you
# can see whether Young's interval is the best. Target: right for any runs, to one part in a million. A point for the means, a point for the best. For example

# %%
print(lab.target("compare"))


# %% answer="compare"
def compare(
    intervals: list[float],
    work: float,
    save: float,
    restart: float,
    runs: list[list[float]],
) -> dict:
    """The mean seconds with each interval, and the best interval."""
    ### BEGIN SOLUTION
    means = []
    for interval in intervals:
        seconds = [elapsed(work, interval, save, restart, run) for run in runs]
        means.append(float(np.mean(seconds)))
    return {"means": means, "best": intervals[int(np.argmin(means))]}
    ### END SOLUTION


# %% [markdown]
# ## What you have now
#
# - A program that reads a log as an engineer does: first what went wrong *first*, then who is different from the others.
# - An interval for your next job. Look at the table of the last check: an interval half or twice as long costs little
#   more, one four times too short or too long costs much.
#
# **Going on.** [Chapter 14](../../notebooks/14_other_frameworks.ipynb).
