"""Answers to the capstone's exercises that need no TensorFlow; those to `train` are in answers_16_training."""

import itertools
import math
from datetime import timedelta
from statistics import mean, median, median_low

from lab_16.hints import Lab16JobHint as Job
from lab_16.hints import Lab16NumberHint as Number
from lab_16.hints import Lab16ReportHint as Report

from distlab import costs
from distlab.labs.number_judge import NumberHint
from tests.distlab.labs.known_wrong import LabAnswers, written_solution

ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right


# throughput


def rated(measured, warm_up, rate=None, speedup=None, efficiency=None):
    """The right numbers, of which some are computed in another way."""
    rate = rate or (lambda steps: median(texts / seconds for texts, seconds in steps[warm_up:]))
    rates = {ranks: rate(steps) for ranks, steps in measured.items()}
    speedup = speedup or (lambda ranks: rates[ranks] / rates[1])
    efficiency = efficiency or (lambda ranks: rates[ranks] / rates[1] / ranks)
    return {
        ranks: {"texts/s": rates[ranks], "speed-up": speedup(ranks), "efficiency": efficiency(ranks)} for ranks in rates
    }


ANSWERS.solved("throughput", rated)


@right("throughput")
def sorted_by_hand(measured, warm_up):
    def middle(steps):
        rates = sorted(texts / seconds for texts, seconds in steps[warm_up:])
        return (rates[(len(rates) - 1) // 2] + rates[len(rates) // 2]) / 2

    return rated(measured, warm_up, middle)


FOLLOWS = (NumberHint.FOLLOWS, NumberHint.FOLLOWS)


@wrong("throughput", Number.WARM_UP_INCLUDED, *FOLLOWS)
def with_warm_up(measured, warm_up):
    return rated(measured, 0)


@wrong("throughput", Number.MEAN_RATE, *FOLLOWS)
def mean_rate(measured, warm_up):
    return rated(measured, warm_up, lambda steps: mean(texts / seconds for texts, seconds in steps[warm_up:]))


@wrong("throughput", Number.ONE_OF_TWO, *FOLLOWS)
def lower_median(measured, warm_up):
    return rated(measured, warm_up, lambda steps: median_low(texts / seconds for texts, seconds in steps[warm_up:]))


@wrong("throughput", Number.ONE_LEFT_OUT, *FOLLOWS)
def one_left_out(measured, warm_up):
    return rated(measured, warm_up + 1)


@wrong("throughput", Number.SUM_OF_ALL, *FOLLOWS)
def sum_of_all(measured, warm_up):
    return rated(
        measured,
        warm_up,
        lambda steps: sum(texts for texts, _ in steps[warm_up:]) / sum(seconds for _, seconds in steps[warm_up:]),
    )


@wrong("throughput", Number.FULL_BATCHES, *FOLLOWS)
def full_batches(measured, warm_up):
    return rated(
        measured, warm_up, lambda steps: max(n for n, _ in steps) / median(seconds for _, seconds in steps[warm_up:])
    )


@wrong("throughput", Number.SPEEDUP_IS_EFFICIENCY, share=2 / 3)
def speedup_is_efficiency(measured, warm_up):
    numbers = rated(measured, warm_up)
    return rated(measured, warm_up, speedup=lambda ranks: numbers[ranks]["efficiency"])


@wrong("throughput", Number.UPSIDE_DOWN, share=2 / 3)
def slow_down(measured, warm_up):
    numbers = rated(measured, warm_up)
    return rated(measured, warm_up, speedup=lambda ranks: 1 / numbers[ranks]["speed-up"])


@wrong("throughput", Number.SPEEDUP_IDEAL, share=2 / 3)
def ideal(measured, warm_up):
    return rated(measured, warm_up, speedup=lambda ranks: ranks)


@wrong("throughput", Number.EFFICIENCY_IS_SPEEDUP, share=2 / 3)
def efficiency_is_speedup(measured, warm_up):
    numbers = rated(measured, warm_up)
    return rated(measured, warm_up, efficiency=lambda ranks: numbers[ranks]["speed-up"])


@wrong("throughput", Number.PER_CENT, share=2 / 3)
def in_per_cent(measured, warm_up):
    numbers = rated(measured, warm_up)
    return rated(measured, warm_up, efficiency=lambda ranks: 100 * numbers[ranks]["efficiency"])


@wrong("throughput", Number.NOT_BY_RANKS)
def a_list(measured, warm_up):
    return list(rated(measured, warm_up).values())


# profile

PARTS = ("input", "computing", "all-reduce")


def length(events, name):
    return sum(event["end"] - event["start"] for event in events if event["name"] == name)


def duration(events):
    steps = {event["step"] for event in events}
    return sum(
        max(event["end"] for event in events if event["step"] == step)
        - min(event["start"] for event in events if event["step"] == step)
        for step in steps
    )


def hidden(events):
    return sum(
        max(0.0, min(one["end"], other["end"]) - max(one["start"], other["start"]))
        for one in events
        for other in events
        if (one["name"], other["name"]) == ("all-reduce", "computing")
    )


def shares(events, total=None, exposed=None):
    seconds = {name: length(events, name) for name in PARTS}
    seconds["all-reduce"] = seconds["all-reduce"] - hidden(events) if exposed is None else exposed
    return {name: value / (total or duration(events)) for name, value in seconds.items()}


def with_bottleneck(values):
    return {**values, "bottleneck": max(values, key=values.get)}


def later(events):
    return [event for event in events if event["step"] > 0]


ANSWERS.solved("profile", lambda events: with_bottleneck(shares(later(events))))


@right("profile")
def by_moments(events):
    """Between two moments where something begins or ends nothing changes."""
    own = later(events)
    values = dict.fromkeys(PARTS, 0.0)
    moments = sorted({event[side] for event in own for side in ("start", "end")})
    for start, end in itertools.pairwise(moments):
        running = {event["name"] for event in own if event["start"] <= start and event["end"] >= end}
        for name in running - ({"all-reduce"} if "computing" in running else set()):
            values[name] += end - start
    return with_bottleneck({name: value / duration(own) for name, value in values.items()})


def wrong_shares(title, function, *hints, share=0.25):
    def answer(events):
        return {**function(later(events), events), "bottleneck": with_bottleneck(shares(later(events)))["bottleneck"]}

    ANSWERS.wrong_value("profile", title, answer, *hints, share=share)


wrong_shares("with_first_step", lambda own, events: shares(events), *[Number.FIRST_STEP_INCLUDED] * 3)
wrong_shares(
    "of_busy_time",
    lambda own, events: shares(own, sum(length(own, name) for name in PARTS)),
    *[Number.OF_BUSY_TIME] * 3,
)
wrong_shares(
    "with_time_between_steps",
    lambda own, events: shares(own, max(e["end"] for e in own) - min(e["start"] for e in own)),
    *[Number.BETWEEN_STEPS] * 3,
)
wrong_shares("seconds", lambda own, events: shares(own, 1.0), *[Number.SECONDS_NOT_SHARE] * 3)
wrong_shares(
    "in_per_cent", lambda own, events: {name: 100 * part for name, part in shares(own).items()}, *[Number.PER_CENT] * 3
)
wrong_shares(
    "all_of_the_all_reduce",
    lambda own, events: shares(own, exposed=length(own, "all-reduce")),
    Number.HIDDEN_COUNTED,
    share=0.75,
)
wrong_shares("hidden_part", lambda own, events: shares(own, exposed=hidden(own)), Number.HIDDEN_PART, share=0.75)


def after_the_last_computing(own, events):
    seconds = 0
    for step in {event["step"] for event in own}:
        last = max(e["end"] for e in own if e["step"] == step and e["name"] == "computing")
        exchanges = [e for e in own if e["step"] == step and e["name"] == "all-reduce"]
        seconds += sum(max(0, e["end"] - max(e["start"], last)) for e in exchanges)
    return shares(own, exposed=seconds)


wrong_shares("after_the_last_computing", after_the_last_computing, Number.AFTER_THE_LAST, share=0.75)


def hidden_by_any(own, events):
    as_computing = [e | {"name": "computing"} if e["name"] == "input" else e for e in own]
    return shares(own, exposed=length(own, "all-reduce") - hidden(as_computing))


wrong_shares("hidden_by_any", hidden_by_any, Number.HIDDEN_BY_INPUT, share=0.75)


def mean_of_steps(own, events):
    steps = sorted({event["step"] for event in own})
    each = [shares([event for event in own if event["step"] == step]) for step in steps]
    return {name: mean(part[name] for part in each) for name in PARTS}


wrong_shares("mean_of_steps", mean_of_steps, *[Number.MEAN_OF_SHARES] * 3)


@wrong("profile", Number.ANOTHER_BOTTLENECK, share=0.75)
def least(events):
    values = shares(later(events))
    return {**values, "bottleneck": min(values, key=values.get)}


@wrong("profile", Number.ANOTHER_BOTTLENECK, share=0.75)
def bottleneck_of_all_seconds(events):
    seconds = {name: length(later(events), name) for name in PARTS}
    return {**shares(later(events)), "bottleneck": max(seconds, key=seconds.get)}


@wrong("profile", Number.HIDDEN_COUNTED, NumberHint.FOLLOWS, share=0.5)
def nothing_subtracted(events):
    return with_bottleneck(shares(later(events), exposed=length(later(events), "all-reduce")))


@wrong("profile", Number.UNKNOWN_BOTTLENECK, share=0.75)
def the_network(events):
    return {**shares(later(events)), "bottleneck": "the network"}


@wrong("profile", NumberHint.NAMES)
def shares_alone(events):
    return shares(later(events))


# predict


def ring(ranks, nbytes, latency, seconds_per_byte):
    return 2 * (ranks - 1) * (latency + nbytes / ranks * seconds_per_byte)


def predict(
    ranks,
    batch,
    fixed,
    each,
    nbytes,
    latency,
    seconds_per_byte,
    at_least,
    step=None,
    rate=None,
    efficiency=None,
    counts=None,
    pick=max,
    most=None,
):
    """The right numbers, of which some are computed in another way."""

    def right_step(count):
        return fixed + each * math.ceil(batch / count) + ring(count, nbytes, latency, seconds_per_byte)

    def right_efficiency(count):
        return right_step(1) / right_step(count) / count

    counts = counts or [2**power for power in range(10) if 2**power <= ranks]
    worth = [count for count in counts if right_efficiency(count) >= at_least]
    most = pick(worth) if worth or most is None else most
    own_step = step or right_step(ranks)
    return {
        "step": own_step,
        "texts/s": rate(own_step) if rate else batch / own_step,
        "efficiency": efficiency(right_efficiency(ranks)) if efficiency else right_step(1) / own_step / ranks,
        "most ranks": most,
    }


ANSWERS.solved("predict", predict)


@right("predict")
def by_the_course(ranks, batch, fixed, each, nbytes, latency, seconds_per_byte, at_least):
    cost = costs.all_reduce("ring", ranks, nbytes).seconds(latency, seconds_per_byte)
    arguments = (ranks, batch, fixed, each, nbytes, latency, seconds_per_byte, at_least)
    return predict(*arguments, step=float(fixed + each * -(-batch // ranks) + cost))


def wrong_step(title, step, hint):
    def answer(ranks, batch, fixed, each, nbytes, latency, seconds_per_byte, at_least):
        arguments = (ranks, batch, fixed, each, nbytes, latency, seconds_per_byte, at_least)
        return predict(*arguments, step=step(*arguments[:-1]))

    ANSWERS.wrong_value("predict", title, answer, hint, *FOLLOWS, share=0.25)


wrong_step("no_exchange", lambda p, b, f, e, n, *_: f + e * math.ceil(b / p), Number.NO_EXCHANGE)
wrong_step("parts_of_texts", lambda p, b, f, e, *network: f + e * b / p + ring(p, *network), Number.PARTS_OF_TEXTS)
wrong_step("rounded_down", lambda p, b, f, e, *network: f + e * (b // p) + ring(p, *network), Number.ROUNDED_DOWN)
wrong_step("all_divided", lambda p, b, f, e, *network: (f + e * b) / p + ring(p, *network), Number.FIXED_DIVIDED)
wrong_step("not_divided", lambda p, b, f, e, *network: f + e * b + ring(p, *network), Number.NOT_DIVIDED)
wrong_step(
    "no_fixed_part", lambda p, b, f, e, *network: e * math.ceil(b / p) + ring(p, *network), Number.FIXED_FORGOTTEN
)
wrong_step(
    "half_a_ring", lambda p, b, f, e, *network: f + e * math.ceil(b / p) + ring(p, *network) / 2, Number.HALF_RING
)
wrong_step(
    "one_message",
    lambda p, b, f, e, n, latency, beta: f + e * math.ceil(b / p) + latency + n * beta,
    Number.ONE_MESSAGE,
)
wrong_step(
    "whole_arrays",
    lambda p, b, f, e, n, *network: f + e * math.ceil(b / p) + ring(p, n * p, *network),
    Number.WHOLE_ARRAYS,
)


@wrong("predict", Number.RATE_OF_ONE, share=0.75)
def rate_of_one(ranks, batch, *more):
    return predict(ranks, batch, *more, rate=lambda step: batch / step / ranks)


@wrong("predict", Number.BATCH_OF_ALL, share=0.75)
def batch_times_ranks(ranks, batch, *more):
    return predict(ranks, batch, *more, rate=lambda step: batch * ranks / step)


@wrong("predict", Number.EFFICIENCY_IS_SPEEDUP, share=0.75)
def speedup(ranks, *more):
    return predict(ranks, *more, efficiency=lambda efficiency: efficiency * ranks)


@wrong("predict", Number.NO_POWER, share=0.75)
def any_number(ranks, *more):
    return predict(ranks, *more, counts=list(range(1, ranks + 1)))


@wrong("predict", Number.NO_POWER, share=0.75)
def all_ranks_too(ranks, *more):
    return predict(ranks, *more, counts=[2**power for power in range(10) if 2**power <= ranks] + [ranks])


@wrong("predict", Number.OVERLAPPED, *FOLLOWS, NumberHint.FOLLOWS)
def overlapped(ranks, batch, fixed, each, nbytes, latency, seconds_per_byte, at_least):
    def step(count):
        return max(fixed + each * math.ceil(batch / count), ring(count, nbytes, latency, seconds_per_byte))

    def efficiency(count):
        return step(1) / step(count) / count

    counts = [2**power for power in range(10) if 2**power <= ranks]
    return {
        "step": step(ranks),
        "texts/s": batch / step(ranks),
        "efficiency": efficiency(ranks),
        "most ranks": max(count for count in counts if efficiency(count) >= at_least),
    }


@wrong("predict", Number.PER_CENT, NumberHint.FOLLOWS, share=0.5)
def per_cent(ranks, *more):
    numbers = predict(ranks, *more)
    most = max(2**power for power in range(10) if 2**power <= ranks)
    return numbers | {"efficiency": 100 * numbers["efficiency"], "most ranks": most}


@wrong("predict", Number.FEWEST_RANKS, share=0.75)
def fewest(ranks, *more):
    return predict(ranks, *more, pick=min)


@wrong("predict", Number.EXACTLY_ENOUGH, share=0.75)
def more_than_at_least(ranks, *more):
    *more, at_least = more
    return predict(ranks, *more, at_least) | {
        "most ranks": predict(ranks, *more, at_least + 1e-12, most=1)["most ranks"]
    }


@wrong("predict", Number.ONE_TOO_FAR, share=0.75)
def one_too_far(ranks, *more):
    return predict(ranks, *more, pick=lambda counts: 2 * max(counts))


@wrong("predict", NumberHint.NAMES)
def step_alone(*arguments):
    return predict(*arguments)["step"]


# job_script

SCRIPT = written_solution("16", "job_script")
ANSWERS.solved("job_script", SCRIPT)


@right("job_script")
def short_options(nodes, tasks, cores, minutes):
    days, rest = divmod(minutes, 1440)
    return f"""#!/usr/bin/env bash
# a comment
#SBATCH -N {nodes} -n {nodes * tasks} --ntasks-per-node={tasks}
#SBATCH -c{cores} -t {days}-{rest // 60}:{rest % 60}

module load python
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK
time srun --ntasks=$SLURM_NTASKS \\
    .venv/bin/python train.py --epochs 3
"""


@right("job_script")
def plain_minutes(nodes, tasks, cores, minutes):
    script = SCRIPT(nodes, tasks, cores, minutes).replace(f"{minutes // 60}:{minutes % 60:02}:00", str(minutes))
    return script.replace(f" --cpus-per-task={cores} python", " --cpus-per-task=${SLURM_CPUS_PER_TASK:-1} python3 -u")


def right_script(title, change):
    def answer(nodes, tasks, cores, minutes):
        return change(SCRIPT(nodes, tasks, cores, minutes), nodes, tasks, cores, minutes)

    ANSWERS.right_answers["job_script"].append((title, {"job_script": answer}))


right_script(
    "cores_in_a_variable",
    lambda script, n, t, c, m: script.replace("set -euo", f"cores={c}\nset -euo").replace(
        f"={c} python", "=$cores python"
    ),
)
right_script(
    "inside_if", lambda script, *_: script.replace("srun", "if ! srun").replace("train.py", "train.py; then exit 1; fi")
)
right_script("names_of_nodes_first", lambda script, *_: script.replace("srun", "srun --ntasks=1 hostname\nsrun", 1))
right_script(
    "tries_again",
    lambda script, *_: script.replace("srun", "for run in 1 2 3; do\n  srun").replace(
        "train.py", "train.py && exit 0\n  sleep 60\ndone\nexit 1"
    ),
)
right_script(
    "until_it_works",
    lambda script, *_: script.replace("srun", "until srun").replace("train.py", "train.py; do sleep 60; done"),
)
right_script("a_range_of_nodes", lambda script, n, *_: script.replace(f"--nodes={n}", f"--nodes={n}-{n}"))
right_script(
    "by_the_flag", lambda script, *_: script.replace("bash\n", "bash -e\n", 1).replace("set -euo pipefail\n", "")
)
right_script(
    "status_kept",
    lambda script, *_: without(script, "set -euo") + "\nstatus=$?\necho done\nexit $status\n",
)
right_script("or_exit", lambda script, *_: without(script, "set -euo") + " || exit 1\necho done\n")
right_script("into_a_log", lambda script, *_: script.replace("train.py", "train.py | tee log"))
right_script(
    "in_a_block",
    lambda script, *_: without(script, "set -euo").replace("srun", "if [ -f train.py ]; then\nsrun") + "\nfi\n",
)
right_script("waits", lambda script, *_: script.replace("train.py", "train.py &\necho started\nwait"))
right_script(
    "of_one_command",
    lambda script, n, t, c, m: script.replace(
        f"srun --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task={c}", f"SRUN_CPUS_PER_TASK={c} srun"
    ),
)


def wrong_script(title, change, *hints, share=0.75):
    def answer(nodes, tasks, cores, minutes):
        return change(SCRIPT(nodes, tasks, cores, minutes), nodes, tasks, cores, minutes)

    ANSWERS.wrong_value("job_script", title, answer, *hints, share=share)


def without(script, words):
    return "\n".join(line for line in script.splitlines() if words not in line)


def limit(script, minutes, text):
    return script.replace(f"{minutes // 60}:{minutes % 60:02}:00", text)


wrong_script(
    "an_array",
    lambda script, *_: script.replace("#SBATCH --nodes", "#SBATCH --array=1-2\n#SBATCH --nodes"),
    Job.AN_ARRAY,
)
wrong_script("says_done", lambda script, *_: without(script, "set -euo") + "\necho done\n", Job.STATUS_LOST)
wrong_script(
    "into_a_log_without_pipefail",
    lambda script, *_: without(script, "set -euo").replace("train.py", "train.py | tee log"),
    Job.STATUS_PIPED,
)
wrong_script("no_nodes", lambda script, *_: without(script, "--nodes"), Job.NO_NODES)
wrong_script("one_node", lambda script, n, *_: script.replace(f"--nodes={n}", "--nodes=1"), Job.NODES)
wrong_script("no_tasks", lambda script, *_: without(script, "--ntasks"), Job.NO_TASKS)
wrong_script(
    "tasks_of_all",
    lambda script, n, t, *_: script.replace(f"-per-node={t}", f"-per-node={n * t}"),
    Job.TASKS_OF_ALL,
)
wrong_script(
    "tasks_per_node_in_all",
    lambda script, n, t, *_: script.replace(f"--ntasks-per-node={t}", f"--ntasks={t}"),
    Job.ALL_TASKS,
)
wrong_script(
    "no_cores",
    lambda script, *_: without(script, "#SBATCH --cpus"),
    Job.NO_CORES,
)
wrong_script(
    "srun_forgets",
    lambda script, n, t, c, m: script.replace(f" --cpus-per-task={c} python", " python"),
    Job.SRUN_FORGETS,
)
wrong_script("no_time", lambda script, *_: without(script, "--time"), Job.NO_TIME)
wrong_script("as_seconds", lambda script, n, t, c, m: limit(script, m, f"0:{m}"), Job.MINUTES_AS_SECONDS)
wrong_script("as_hours", lambda script, n, t, c, m: limit(script, m, f"{m}:00:00"), Job.MINUTES_AS_HOURS)
wrong_script("in_words", lambda script, n, t, c, m: limit(script, m, f"{m}min"), Job.TIME_UNREADABLE)
wrong_script("too_long", lambda script, n, t, c, m: limit(script, m, f"{m + 1}"), Job.TIME)
wrong_script(
    "no_srun",
    lambda script, n, t, c, m: without(script, "srun") + "\npython train.py",
    Job.NO_SRUN,
)
wrong_script("mpirun", lambda script, *_: script.replace("srun", "mpirun"), Job.NOT_SRUN)
wrong_script("in_the_background", lambda script, *_: script.replace("train.py", "train.py &"), Job.NOT_WAITED)
wrong_script(
    "tasks_of_all_nodes_alone",
    lambda script, n, t, *_: script.replace(f"--ntasks-per-node={t}", f"--ntasks={n * t}"),
    Job.TASKS_UNEVEN,
)
wrong_script("in_seconds", lambda script, n, t, c, m: limit(script, m, str(60 * m)), Job.SECONDS_AS_MINUTES)
wrong_script("minutes_last", lambda script, n, t, c, m: limit(script, m, f"0:0:{m}"), Job.MINUTES_AS_SECONDS)
wrong_script("as_timedelta", lambda script, n, t, c, m: limit(script, m, str(timedelta(minutes=m))), Job.REFUSED)
wrong_script("not_filled_in", lambda script, n, *_: script.replace(f"={n}", "={nodes}"), Job.NOT_FILLED_IN, share=0)
wrong_script("srun_twice", lambda script, *_: script + script.splitlines()[-1], Job.SEVERAL_SRUN)
wrong_script(
    "for_each_node",
    lambda script, n, t, *_: script.replace("srun", f"for rank in $(seq {n * t}); do srun").replace(
        "train.py", "train.py & done; wait"
    ),
    Job.SRUN_IN_LOOP,
)
wrong_script("srun_one", lambda script, *_: script.replace("srun ", "srun -n 1 "), Job.SRUN_TASKS)
wrong_script("no_python", lambda script, *_: script.replace(" python ", " ./"), Job.NO_PYTHON)
wrong_script("serial", lambda script, *_: script.replace("train.py", "train_serial.py"), Job.ANOTHER_PROGRAM)
wrong_script("no_shell", lambda script, *_: script.partition("\n")[2], Job.NO_SHELL, share=0)
wrong_script("two_signs", lambda script, *_: script.replace("#SBATCH", "##SBATCH"), Job.NO_OPTIONS, share=0)
wrong_script(
    "options_late",
    lambda script, *_: script.replace("#!/bin/bash\n", "#!/bin/bash\nset -e\n"),
    Job.OPTIONS_LATE,
    share=0,
)
wrong_script("a_list_of_lines", lambda script, *_: script.splitlines(), Job.NO_TEXT, share=0)


# report

REPORT = written_solution("16", "report")
ANSWERS.solved("report", REPORT, untouched={name: " " for name in REPORT})
ANSWERS.right_answers["report"].append(("in_another_order", {"report": dict(reversed(REPORT.items()))}))


ANSWERS.right_answers["report"].append(
    (
        "short_words",
        {"report": REPORT | {"job": "I ask for 4 nodes. " * 3 + "It is a lot, but 8 is more than we can pay here."}},
    )
)


def wrong_report(title, name, text, *hints, share=5 / 6):
    ANSWERS.wrong_value("report", title, REPORT | {name: text}, *hints, share=share)


wrong_report("one_empty", "job", " ", Report.EMPTY)
wrong_report("one_short", "limits", "I tested at most 4 ranks.", Report.SHORT)
wrong_report("one_word", "job", "cores", Report.SHORT)
wrong_report("one_long", "profile", 3 * REPORT["profile"] + REPORT["job"], Report.LONG)
wrong_report(
    "no_number", "equality", REPORT["limits"].translate(dict.fromkeys(map(ord, "0123456789"))), Report.NO_NUMBER
)
wrong_report("repeated", "prediction", "1 rank and 64 ranks " * 10, Report.REPEATS)
wrong_report("copied", "throughput", REPORT["profile"], Report.TWICE, Report.TWICE, share=4 / 6)
wrong_report("pasted", "job", "In all, 1. " + REPORT["limits"], Report.TWICE, Report.TWICE, share=4 / 6)
wrong_report("a_number", "job", 3.5, Report.NO_TEXT)
ANSWERS.wrong_value("report", "a_text", REPORT["limits"], Report.PARTS)
