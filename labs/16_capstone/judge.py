"""The judge of lab 16: what was measured, a prediction, a job script, the form of a report."""

import math
import re
import string
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from lab_16 import given, training

from distlab import costs
from distlab.labs import Answer, Exercise, Lab, Verdict, not_done, right, wrong
from distlab.labs.by_programs import ByPrograms, Follows, Mistake, by_changes, changed, formulas
from distlab.labs.fake_slurm import BatchJob, Circumstances, NeverEnds, Script, Started, WrongScript
from distlab.labs.verdict import first, hinted

Generator = np.random.Generator
# Throughput ----------------------------------------------------------------------------------------------------------

RATE, SPEEDUP, EFFICIENCY = RATES = ("texts/s", "speed-up", "efficiency")
THROUGHPUT = """\
def throughput(measured, warm_up):
    rates = {}
    for ranks, steps in measured.items():
        later = np.array(steps[warm_up:])
        rates[ranks] = float(np.median(later[:, 0] / later[:, 1]))
    return {
        ranks: {"texts/s": rate, "speed-up": rate / rates[1], "efficiency": rate / rates[1] / ranks}
        for ranks, rate in rates.items()
    }
"""
UPSIDE_DOWN = "this is upside down. Should it grow when the ranks are faster?"
PER_CENT = "this is in per cent; asked for is a part of 1."
MEDIAN, SPEED = "np.median(later[:, 0] / later[:, 1])", '"speed-up": rate / rates[1]'
OF_ALL = '"efficiency": rate / rates[1] / ranks'
RATE_MISTAKES = {
    "the warm-up is in it. From which step on do you count?": [[("[warm_up:]", "[:]")]],
    "one step too many is left out. How many are the warm-up?": [[("[warm_up:]", "[warm_up + 1:]")]],
    "this is a mean, which one disturbed step can spoil. What does chapter 11 take instead?": [[("median", "mean")]],
    "this is one of the two steps in the middle. What is the median of an even number of them?": [
        [(MEDIAN, "sorted(later[:, 0] / later[:, 1])[(len(later) - 1) // 2]")],
        [(MEDIAN, "sorted(later[:, 0] / later[:, 1])[len(later) // 2]")],
    ],
    "this divides all texts by all seconds, with the disturbed steps. What is the rate of each step?": [
        [(MEDIAN, "later[:, 0].sum() / later[:, 1].sum()")]
    ],
    "not every step has as many texts. What is the rate of each step by itself?": [
        [(MEDIAN, "later[:, 0].max() / np.median(later[:, 1])")],
        [(MEDIAN, "np.median(later[:, 0]) / np.median(later[:, 1])")],
    ],
    "this is one rank's share. How many texts do all ranks do in a second?": [[(MEDIAN, f"{MEDIAN} / ranks")]],
    "the texts of a step are those of all ranks already. Why multiply?": [[(MEDIAN, f"{MEDIAN} * ranks")]],
}
SPEEDUP_MISTAKES = {
    UPSIDE_DOWN: [[(SPEED, '"speed-up": rates[1] / rate')]],
    "this is the efficiency. What is the speed-up itself?": [[(SPEED, f"{SPEED} / ranks")]],
    "this is the ideal one. What was measured?": [[(SPEED, '"speed-up": ranks')]],
}
EFFICIENCY_MISTAKES = {
    "this is the speed-up. Which part is that of the ideal one?": [[(OF_ALL, '"efficiency": rate / rates[1]')]],
    PER_CENT: [[(OF_ALL, f"{OF_ALL} * 100")]],
}


class Measured(NamedTuple):
    """Steps by ranks, and how many of each list are the warm-up."""

    measured: dict[int, list[tuple[int, float]]]
    warm_up: int


def measurements(generator: Generator) -> list[Measured]:
    """Steps on 1, 2, 4 and 8 ranks, in any order: slow at first, one disturbed, one batch in four small."""
    cases = []
    for warm_up in (2, 1, 3):
        batch, seconds = int(generator.integers(100, 400)), float(generator.uniform(0.05, 0.2))
        measured = {}
        for ranks in generator.permutation([1, 2, 4, 8]).tolist():
            count = warm_up + 4 * int(generator.integers(2, 4))
            times = seconds * (0.15 + 0.85 / ranks) * generator.uniform(0.9, 1.1, count)
            times[:warm_up] *= generator.uniform(5, 20, warm_up)
            times[-2] *= 6  # somebody else used the machine
            texts = [batch if number % 4 else batch // 3 for number in range(1, count + 1)]
            measured[ranks] = [(n, float(s * (0.5 if n < batch else 1))) for n, s in zip(texts, times, strict=True)]
        cases.append(Measured(measured, warm_up))
    return cases


def by_rates(case: Measured, value: Any) -> dict[str, list[Any]]:
    """Each number on all ranks."""
    return {name: [value[ranks][name] for ranks in case.measured] for name in RATES}


def form_of_rates(case: Measured, value: Any) -> str | None:
    """What is wrong with the form."""
    is_by_ranks = isinstance(value, dict) and set(value) == set(case.measured)
    is_by_names = is_by_ranks and all(isinstance(of, dict) and set(RATES) <= set(of) for of in value.values())
    names = "`throughput` gives a dictionary with the ranks of `measured`, and for each three numbers by name."
    return None if is_by_names else names


def per_rank(case: Measured, own: Mapping[str, Any], divided: bool) -> list[float]:
    """Speed-ups from an answer's own rates, or efficiencies."""
    rates = dict(zip(case.measured, own[RATE], strict=True))
    return [rate / rates[1] / (ranks if divided else 1) for ranks, rate in rates.items()]


THROUGHPUT_JUDGE = ByPrograms(
    changed(THROUGHPUT),
    measurements,
    by_changes(THROUGHPUT, RATE_MISTAKES, (RATE,))
    + by_changes(THROUGHPUT, SPEEDUP_MISTAKES, (SPEEDUP,))
    + by_changes(THROUGHPUT, EFFICIENCY_MISTAKES, (EFFICIENCY,)),
    otherwise={
        RATE: "it is not the median, over the steps after the warm-up, of texts by seconds.",
        SPEEDUP: "how often does one rank's throughput go into it?",
        EFFICIENCY: "the speed-up over one rank, as a part of the ideal one: what is ideal?",
    },
    said=lambda case: f"on {', '.join(map(str, case.measured))} ranks, with a warm-up of {case.warm_up}",
    parts=RATES,
    split=by_rates,
    form=form_of_rates,
    follows=[
        Follows(SPEEDUP, RATE, lambda case, own: per_rank(case, own, divided=False)),
        Follows(EFFICIENCY, RATE, lambda case, own: per_rank(case, own, divided=True)),
    ],
    observe=lambda answer, case: answer.call("throughput", *case),
)

# Profile -------------------------------------------------------------------------------------------------------------

INPUT, COMPUTING, EXCHANGE = NAMES = ("input", "computing", "all-reduce")
BOTTLENECK = "bottleneck"
PROFILE = """\
def profile(events):
    later = [event for event in events if event["step"] > 0]
    total = 0
    for step in {event["step"] for event in later}:
        own = [event for event in later if event["step"] == step]
        total += max(event["end"] for event in own) - min(event["start"] for event in own)
    seconds = dict.fromkeys(["input", "computing", "all-reduce"], 0)
    for event in later:
        seconds[event["name"]] += event["end"] - event["start"]
    whole = seconds["all-reduce"]
    for one in later:
        for other in later:
            if one["name"] == "all-reduce" and other["name"] == "computing":
                overlap = min(one["end"], other["end"]) - max(one["start"], other["start"])
                seconds["all-reduce"] -= max(0, overlap)
    exposed = seconds["all-reduce"]
    shares = {name: taken / total for name, taken in seconds.items()}
    return {**shares, "bottleneck": max(shares, key=shares.get)}
"""
SHARES = "    shares ="
LAST = """\
    last = {}
    for event in later:
        if event["name"] == "computing":
            last[event["step"]] = max(event["end"], last.get(event["step"], 0))
    seconds["all-reduce"] = sum(
        max(0, event["end"] - max(event["start"], last.get(event["step"], 0)))
        for event in later
        if event["name"] == "all-reduce"
    )
"""
MEAN = """
def mean_of_steps(events):
    each = [profile([event for event in events if event["step"] == step]) for step in {e["step"] for e in events} - {0}]
    shares = {name: np.mean([own[name] for own in each]) for name in ("input", "computing", "all-reduce")}
    return {**shares, "bottleneck": max(shares, key=shares.get)}
"""
ALL_MISTAKES = {
    "step 0 is in it. What is special about a first step?": [[("> 0", ">= 0")]],
    "this is a part of the events' seconds. How long is the step itself, with its gaps and overlaps?": [
        [(SHARES, f"    total = sum(seconds.values())\n{SHARES}")],
        [(SHARES, f"    total = sum(seconds.values()) + whole - exposed\n{SHARES}")],
    ],
    "the time between two steps is in the total. When does a step begin, and when does it end?": [
        [(SHARES, f"    total = max(e['end'] for e in later) - min(e['start'] for e in later)\n{SHARES}")]
    ],
    "these are seconds. Which part of the steps are they?": [[("taken / total", "taken")]],
    PER_CENT: [[("taken / total", "100 * taken / total")]],
}
EXCHANGE_MISTAKES = {
    "only what follows the last computing counts here. What if the rank waits in the middle of a step?": [
        [(SHARES, LAST + SHARES)]
    ],
    "input hides a part of the all-reduce here. Which events are said to hide it?": [
        [('other["name"] == "computing"', 'other["name"] != "all-reduce"')]
    ],
    "this counts all of the all-reduce. Which part costs nothing, because the rank computes meanwhile?": [
        [(SHARES, f'    seconds["all-reduce"] = whole\n{SHARES}')]
    ],
    "this is the part that is hidden behind computing. How much is left?": [
        [(SHARES, f'    seconds["all-reduce"] = whole - exposed\n{SHARES}')]
    ],
}
BY_HAND: list[list[tuple[str, float, float]]] = [
    [(COMPUTING, 0, 4), (EXCHANGE, 1, 6)],  # the all-reduce is longer than the computing, its exposed part is not
    [(COMPUTING, 0, 2), (EXCHANGE, 2, 3), (COMPUTING, 4, 6)],  # exposed before the last computing
    [(COMPUTING, 0, 2), (EXCHANGE, 2, 6), (INPUT, 4, 5)],  # input hides nothing
]
"""The events of a step that show what drawn timelines do not."""


Timeline = tuple[list[dict[str, Any]]]


def drawn_timeline(generator: Generator, slow: str, steps: int = 4) -> Timeline:
    """One in which a part takes longest; the first step is slow everywhere."""
    lengths = dict(zip(NAMES, generator.uniform(2, 3, 3), strict=True))
    lengths[slow] *= 4
    events, now = [], float(generator.uniform(0, 5))
    for step in range(steps):
        factors = (9.0 if step == 0 else 1.0) * generator.uniform(0.7, 1.4, 3)
        taken = {name: float(lengths[name] * own) for name, own in zip(NAMES, factors, strict=True)}
        ready = now + taken[INPUT]
        begin = ready + float(generator.uniform(0.2, 0.5))
        forward = begin + 0.4 * taken[COMPUTING]
        again = forward + float(generator.uniform(0.2, 0.4))  # a gap
        end = again + 0.6 * taken[COMPUTING]
        early = again + 0.5 * (end - again)  # two all-reduces: one is hidden at first, one begins before the end
        middle = max(early + 0.4 * taken[EXCHANGE], end - 0.1)
        last = max(middle, end) + 0.8 * taken[EXCHANGE]
        events += [(step, INPUT, now, ready), (step, COMPUTING, begin, forward), (step, COMPUTING, again, end)]
        events += [(step, EXCHANGE, early, middle), (step, EXCHANGE, middle, last)]
        now = last + float(generator.uniform(0.3, 0.9))  # between two steps
    return timeline_of([events[place] for place in generator.permutation(len(events))])


def timeline_of(events: list[tuple[int, str, float, float]]) -> Timeline:
    """Events from their values."""
    return ([dict(zip(("step", "name", "start", "end"), event, strict=True)) for event in events],)


def timelines(generator: Generator) -> list[Timeline]:
    """Drawn ones, and a step by hand each."""
    cases = [drawn_timeline(generator, slow) for slow in generator.permutation(NAMES)]
    factor = int(generator.integers(1, 4))
    by_hand = [[(1, name, factor * start, factor * end) for name, start, end in events] for events in BY_HAND]
    return cases + [timeline_of(events) for events in by_hand]


def timeline_in_words(case: Timeline) -> str:
    """A short one by its events."""
    if len(case[0]) > 3:
        return "in one of the timelines"
    events = [f"{event['name']} from {event['start']:g} to {event['end']:g}" for event in case[0]]
    return f"in a step with {', '.join(events)}"


PROFILE_JUDGE = ByPrograms(
    changed(PROFILE),
    timelines,
    [
        *by_changes(PROFILE, EXCHANGE_MISTAKES, (EXCHANGE,)),
        *by_changes(PROFILE, ALL_MISTAKES, NAMES),
        Mistake(
            dict.fromkeys(NAMES, "this is a mean of shares. Should a long step count as a short one does?"),
            changed(MEAN, profile=changed(PROFILE)),
        ),
    ],
    otherwise={
        INPUT: "the seconds of these events, as a part of the seconds of all steps after step 0.",
        COMPUTING: "the seconds of these events, as a part of the seconds of all steps after step 0.",
        EXCHANGE: "only all-reduce in which nothing is computed counts. Draw both on one line of time.",
        BOTTLENECK: lambda case, value: (
            f"{timeline_in_words(case)} another part has a larger share. Which one, if only exposed all-reduce counts?"
            if value in NAMES
            else "the bottleneck is the name of one of the three parts."
        ),
    },
    said=timeline_in_words,
    parts=(*NAMES, BOTTLENECK),
    follows=[Follows(BOTTLENECK, name, lambda case, own: max(NAMES, key=lambda part: own[part])) for name in NAMES],
)

# Predict -------------------------------------------------------------------------------------------------------------

PREDICTED = STEP, OF_STEP, OF_IDEAL, MOST = ("step", "texts/s", "efficiency", "most ranks")


def ring(count: int, nbytes: int, latency: float, seconds_per_byte: float) -> float:
    """The seconds of an all-reduce."""
    return float(costs.all_reduce("ring", count, nbytes).seconds(latency, seconds_per_byte))


class Job(NamedTuple):
    """What `predict` gets, in this order; times in seconds."""

    ranks: int
    batch: int
    fixed: float
    each: float
    nbytes: int
    latency: float
    seconds_per_byte: float
    at_least: float

    def step_on(self, count: int) -> float:
        """The step on so many ranks."""
        of_ring = ring(count, self.nbytes, self.latency, self.seconds_per_byte)
        return self.fixed + self.each * math.ceil(self.batch / count) + of_ring

    def efficiency_on(self, count: int) -> float:
        """The speed-up over one rank, by the ranks."""
        return self.step_on(1) / self.step_on(count) / count


def predict(*case: Any) -> dict[str, float]:
    """A step on all ranks, its throughput and efficiency, and how many ranks are worth it."""
    job = Job(*case)
    most = max(count for count in powers(job.ranks) if job.efficiency_on(count) >= job.at_least)
    step = job.step_on(job.ranks)
    return dict(zip(PREDICTED, (step, job.batch / step, job.efficiency_on(job.ranks), most), strict=True))


def powers(ranks: int) -> list[int]:
    """The powers of two up to the number of ranks."""
    return [2**power for power in range(ranks.bit_length())]


def known_of_job(*case: Any) -> dict[str, Any]:
    """What formulas may use: functions, and the seconds of computing and of the ring."""
    job = Job(*case)
    exchange = ring(job.ranks, job.nbytes, job.latency, job.seconds_per_byte)
    computing, texts = job.step_on(job.ranks) - exchange, math.ceil(job.batch / job.ranks)
    fits = {"fits": lambda count: job.efficiency_on(count) >= job.at_least}
    return job._asdict() | locals() | fits | {"ring": ring, "powers": powers}


POWERS = "only powers of two are asked for."
FIXED = "the fixed part is divided too. Does more ranks make it shorter?"
PREDICT_FORMULAS = {
    STEP: {
        "computing": "the ranks do not talk here. What follows the computing?",
        "exchange": "nothing is computed here. What precedes the all-reduce?",
        "fixed + each * batch / ranks + exchange": "a rank has whole texts. For whom do the others wait?",
        "fixed + each * (batch // ranks) + exchange": (
            "this is the rank with the fewest texts. For whom do the others wait?"
        ),
        "(fixed + each * batch) / ranks + exchange": FIXED,
        "fixed / ranks + each * texts + exchange": FIXED,
        "job.step_on(64)": "this is the step of 64 ranks, whatever `ranks` says. What is it for?",
        "each * texts + exchange": "the fixed part is missing.",
        "fixed + each * batch + exchange": "each rank has the whole batch here. How many texts has it?",
        "computing + latency + nbytes * seconds_per_byte": (
            "this is one message. How many follow one another in a ring, and how long is each?"
        ),
        "computing + exchange / 2": "this is half of the ring. What follows the reduce-scatter?",
        "max(computing, exchange)": (
            "this is the longer of computing and all-reduce, but nothing is hidden. How long do both take?"
        ),
        "computing + ring(ranks, nbytes * ranks, latency, seconds_per_byte)": (
            "whole arrays go round the ring here. What is one message of it?"
        ),
        "computing + ring(ranks, nbytes, seconds_per_byte, latency)": (
            "α and β are swapped. Which of them is for each message?"
        ),
        "computing + ring(ranks, 4 * nbytes, latency, seconds_per_byte)": (
            "the bytes of a gradient are counted more than once. What is `nbytes` already?"
        ),
    },
    OF_STEP: {
        "texts_s / ranks": "this is one rank's share. How many texts do all ranks do in a second?",
        "texts_s * ranks": "`batch` is the global one. Why multiply?",
        "1 / texts_s": UPSIDE_DOWN,
        "texts * ranks / step": "no text is added to fill up the ranks. How many texts are in a step?",
    },
    OF_IDEAL: {
        "efficiency * ranks": "this is the speed-up. Which part is that of the ideal one?",
        "100 * efficiency": PER_CENT,
        "step / job.step_on(1)": UPSIDE_DOWN,
        "computing / step": "this is the share of computing. How much faster than one rank are they, by ranks?",
    },
    MOST: {
        "max((n for n in powers(ranks) if job.efficiency_on(n) > at_least), default=1)": (
            "an efficiency of exactly `at_least` is enough. How do you compare?"
        ),
        "max(filter(fits, range(1, ranks + 1)))": POWERS,
        "max(filter(fits, [*powers(ranks), ranks]))": POWERS,
        "1": "this is the smallest. Which is the largest?",
        "2 * most_ranks": "with this many the efficiency is too low, or there are not so many ranks.",
        "max(1, most_ranks // 2)": "twice as many are still efficient enough. Where does your search end?",
        "ranks": "with all ranks the efficiency may be too low. Compare it with `at_least`.",
    },
}
EXAMPLE = Job(64, 1000, 0.002, 0.0001, 4_000_000, 2e-5, 1e-9, 0.5)


def jobs(generator: Generator) -> list[Job]:
    """Clusters on which 1 rank, some, or all are worth it; the batch is no multiple of the ranks."""

    def job(ranks: int, each: float, slow: float, at_least: float) -> Job:
        batch = ranks * int(generator.integers(10, 30)) + int(generator.integers(1, ranks))
        fixed, each = float(generator.uniform(1e-3, 3e-3)), each * float(generator.uniform(0.8, 1.2))
        net = slow * float(generator.uniform(1e-5, 3e-5)), slow * float(generator.uniform(1e-10, 1e-9))
        return Job(ranks, batch, fixed, each, int(generator.integers(10**6, 10**7)), *net, at_least)

    return [
        job(64, 1e-4, 1, 0.5),
        job(48, 1e-4, 3, 0.6),
        job(64, 1e-2, 0.01, 0.7),
        job(48, 1e-2, 0.01, 0.7),  # all 48 would be worth it, which is no power of two
        job(24, 1e-5, 30, 0.8),
        job(2, 1e-3, 1, 0.5),
        job(16, 3e-4, 1, 0.7),
        # Powers of two without rounding: the efficiency is exactly 1.
        Job(16, 16 * int(generator.integers(10, 30)), 0.0, 2.0**-10, 2**20, 0.0, 0.0, 1.0),
    ]


PREDICT_JUDGE = ByPrograms(
    predict,
    jobs,
    formulas(predict, PREDICT_FORMULAS, known_of_job),
    otherwise={
        STEP: "the fixed part, the texts of the fullest rank, then the ring's all-reduce: which of them differs?",
        OF_STEP: "how many texts are in a step, and how long is it?",
        OF_IDEAL: "the speed-up over one rank, as a part of the ideal one: what is ideal?",
        MOST: "try 1, 2, 4, … ranks up to `ranks`: which is the last with enough efficiency?",
    },
    said=lambda job: f"for {job.ranks} ranks",
    parts=PREDICTED,
    follows=[
        Follows(OF_STEP, STEP, lambda job, own: job.batch / own[STEP]),
        Follows(OF_IDEAL, STEP, lambda job, own: job.step_on(1) / own[STEP] / job.ranks),
        *(Follows(MOST, source, lambda job, own: own[MOST]) for source in (OF_IDEAL, STEP)),
    ],
)

# The job script ------------------------------------------------------------------------------------------------------

LONGEST = 10**9  # no request comes near it, and a mistake in units has a hint of its own
SHAPE, CORES, TIME, START = "nodes and tasks", "cores", "time", "start"


class Request(NamedTuple):
    """`tasks` on each of `nodes`, `cores` for each task, so many minutes."""

    nodes: int
    tasks: int
    cores: int
    minutes: int


def judge_job_script(answer: Answer, generator: Generator) -> Verdict:
    """A quarter of the points for each part, of the first request that is not met."""
    hours = 60 * generator.integers(2, 20, 2)  # a whole number of hours, and a minute less
    days = int(generator.integers(1500, 2800))
    for minutes in (int(generator.integers(31, 59)), int(hours[0]), int(hours[1]) - 1, days):
        sizes = [int(generator.integers(*low_and_high)) for low_and_high in ((2, 9), (2, 5), (5, 9))]
        request = Request(*sizes, minutes)
        text = answer.call("job_script", *request)
        if not isinstance(text, str):
            return wrong("`job_script` gives the text of the script.")
        if problem := form_of_script(text):
            return wrong(problem)
        try:
            hints = script_hints(answer, Script(text, "job_script", LONGEST), request)
        except WrongScript as mistake:
            return wrong(str(mistake))
        if any(hints.values()):
            return hinted(hints)
    return right()


def form_of_script(text: str) -> str | None:
    """The hint on a text of which sbatch would take no option."""
    left = re.search(r"(?<!\$)\{(nodes|tasks|cores|minutes)\b[^}\n]*\}", text)
    fills = "Which letter before the quotes lets Python fill in the value?"
    has_options = re.search(r"^#SBATCH", text, re.MULTILINE)
    return first(
        (left, f"The text still has {left and left[0]} in it. {fills}"),
        (not has_options, "No line begins with #SBATCH. How does Slurm learn what you need?"),
    )


def script_hints(answer: Answer, script: Script, request: Request) -> dict[str, str | None]:
    """What is said of each part: the script runs where `train.py` ends well, and where it fails."""
    environment, programs, status = script.environment(17), [], 1
    runs = [Circumstances([], environment, {"train.py": code}) for code in (0, 3)]
    try:
        programs = script.attempts(answer, runs[:1])[0].programs
        status = script.attempts(answer, runs[1:])[0].status
        problem = None
    except NeverEnds as never:  # where it tries again until it works, nothing is lost
        problem = None if programs else str(never)
    except WrongScript as mistake:
        problem = str(mistake)
    return {
        SHAPE: shape(script, request),
        CORES: cores(script, programs, request),
        TIME: time_limit(script, request),
        START: problem or start(script, programs, is_lost=status == 0),
    }


def shape(job: BatchJob, request: Request) -> str | None:
    """The hint on nodes and tasks."""
    nodes, tasks = job.options.get("nodes"), request.nodes * request.tasks
    per_node, in_all = job.options.get("ntasks-per-node"), job.options.get("ntasks")
    array = f"--array={job.options.get('array')} makes an array of it: every task trains by itself."
    uneven = f"Slurm may divide {in_all} tasks unevenly over {nodes} nodes."
    is_other = per_node and int(per_node) != request.tasks
    return first(
        (job.array, f"{array} How many jobs are needed?"),
        (nodes is None, "the number of nodes is not said. Which option does that?"),
        (
            not job.least_nodes == job.nodes == request.nodes and in_all != str(job.nodes),
            f"--nodes={nodes} is asked for, and {request.nodes} nodes are needed.",
        ),
        (
            not per_node and not in_all,
            "nothing says how many tasks a node gets, so it gets one. How many ranks are needed there?",
        ),
        (
            is_other and int(per_node or 0) == tasks,
            "this many tasks are needed on all nodes together. How many on each?",
        ),
        (is_other, f"the number of tasks on each node is {per_node}, and {request.tasks} are needed."),
        (in_all and int(in_all) != tasks, f"the number of tasks in all is {in_all}, and {tasks} are needed."),
        (not per_node, f"{uneven} Which option says how many each one gets?"),
    )


def cores(job: BatchJob, programs: list[Started], request: Request) -> str | None:
    """The hint on the cores of a task, which srun must be told too."""
    said = programs[0].cores if programs and programs[0].by_srun else request.cores
    forgets = "since Slurm 22.05 srun does not take the cores over from sbatch. Where must they be said again?"
    return first(
        (not job.cpus_per_task, "nothing says how many cores a task gets, so it gets one. Which option does that?"),
        (
            job.cpus_per_task != request.cores,
            f"the number of cores of a task is {job.cpus_per_task}, and {request.cores} are needed.",
        ),
        (said is None, forgets),
        (said != request.cores, f"srun is told --cpus-per-task={said}. How many cores has a task?"),
    )


def time_limit(job: BatchJob, request: Request) -> str | None:
    """The hint on the time."""
    text, needed, seconds = job.options.get("time"), 60 * request.minutes, job.seconds or 0
    return first(
        (text is None, "there is no time limit. How long may the site's default be?"),
        (seconds * 60 == needed, f"Slurm takes the last number of {text!r} for seconds. Where must the minutes be?"),
        (seconds != needed, f"the limit {text!r} means {seconds / 60:g} min, and {request.minutes} min are needed."),
    )


def start(script: Script, programs: list[Started], is_lost: bool) -> str | None:
    """The hint on how `train.py` is started, and on what follows if it fails."""
    trainings = [program for program in programs if program.by_srun and program.name == "train.py"]
    tasks = trainings[0].tasks if trainings else script.ranks
    in_background = re.search(r"srun[^\n]*[^&\n]&[ \t]*($|[\n;])", script.text)
    in_pipe = re.search(r"train\.py[^\n|]*\|[^|]", script.text)
    nothing = "nothing starts the ranks: a script itself runs once, on the first node. Which command starts all tasks?"
    return first(
        (is_lost and in_background, WAIT if "wait" in script.text else BACKGROUND),
        ("srun" not in script.text, nothing),
        (not trainings, "srun does not start `train.py`."),
        (len(trainings) > 1, f"the program is started {len(trainings)} times. How often should it be?"),
        (tasks != script.ranks, f"srun is told --ntasks={tasks}. How many tasks has the job?"),
        (is_lost, PIPED if in_pipe else LOST),
    )


BACKGROUND = (
    "srun runs in the background, and the script ends at once, and the job with it. Which form of `wait` gives the "
    "status of srun?"
)
WAIT = "if `train.py` fails, a plain `wait` ends with 0 all the same. Which form of `wait` gives the status of srun?"
PIPED = "if `train.py` fails, the pipe ends as its last command does. Which option of `set` changes that?"
LOST = "if `train.py` fails, the script goes on and ends as its last command does. What makes it end there?"

# The report ----------------------------------------------------------------------------------------------------------

FEWEST, MOST_WORDS = 25, 120
ALIKE = 12  # so many equal words in a row are copied
TO_READ = "The form is right. What it says is read by your instructor: labs/16_capstone/rubric.md says how."


def judge_report(answer: Answer, generator: Generator) -> Verdict:
    """A sixth of the points for each part."""
    report = answer.value("report")
    if not isinstance(report, dict) or set(report) != set(given.REPORT):
        return wrong(f"`report` is a dictionary with a text for each of {', '.join(given.REPORT)}.")
    if all(value is None or (isinstance(value, str) and not value.strip()) for value in report.values()):
        return not_done("`report` is still empty")
    hints = {name: hint_on_text(report[name]) for name in given.REPORT}
    runs = {name: runs_of_words(str(report[name])) for name in hints if hints[name] is None}
    for name in runs:
        if any(runs[name] & runs[peer] for peer in runs if peer != name):
            hints[name] = "another part has the same sentences. What is each of the two about?"
    return hinted(hints) if any(hints.values()) else right(TO_READ)


def hint_on_text(text: object) -> str | None:
    """What is said of the form of one part."""
    if text is not None and not isinstance(text, str):
        return "it is no text. In which words would you tell another person?"
    words = words_of(text or "")
    count = "1 word" if len(words) == 1 else f"{len(words)} words"
    is_number = any(re.search(r"\d", word) for word in words if not re.fullmatch(r"[a-z]+\d+\W*", word.lower()))
    return first(
        (not text or not text.strip(), "it is still empty."),
        (len(words) < FEWEST, f"it has {count}; {FEWEST} are the least that say something."),
        (
            len(words) > MOST_WORDS,
            f"it has {count}. The page has room for {MOST_WORDS}; which sentences carry the result?",
        ),
        (len({word.lower() for word in words}) < FEWEST / 2, "it says the same words again and again."),
        (not is_number, "it has no number in digits. Which one did you measure, or compute?"),
    )


def words_of(text: str) -> list[str]:
    """What is between spaces, without punctuation at its ends: a number is a word, a dash is none."""
    return [word for part in text.split() if (word := part.strip(string.punctuation))]


def runs_of_words(text: str) -> set[tuple[str, ...]]:
    """All runs of ALIKE words."""
    words = words_of(text.lower())
    return {tuple(words[begin : begin + ALIKE]) for begin in range(len(words) - ALIKE + 1)}


# The lab -------------------------------------------------------------------------------------------------------------


def target(name: str) -> str:
    """One call of an exercise's function and what it must give."""
    if name == "throughput":
        lines = ["throughput(lab.given.MEASURED, warm_up=1)"]
        for ranks, numbers in THROUGHPUT_JUDGE.right(given.MEASURED, 1).items():
            lines.append(f"    {ranks}: " + ", ".join(f"{name} {value:.6g}" for name, value in numbers.items()))
        return "\n".join(lines)
    if name == "profile":
        shares = PROFILE_JUDGE.right(given.TIMELINE)
        values = [f"{name} {shares[name]:.6g}" for name in NAMES]
        return f"profile(lab.given.TIMELINE)\n    {', '.join(values)}, bottleneck {shares[BOTTLENECK]}"
    call = ", ".join(f"{name}={value:g}" for name, value in EXAMPLE._asdict().items())
    lines = [f"    {name:12}{value:>12.6g}" for name, value in PREDICT_JUDGE.right(*EXAMPLE).items()]
    return "\n".join([f"predict({call})", *lines])


LAB = Lab(
    "16_capstone",
    [
        Exercise("train", 12, training.judge_train),
        Exercise("throughput", 6, THROUGHPUT_JUDGE),
        Exercise("profile", 4, PROFILE_JUDGE),
        Exercise("predict", 4, PREDICT_JUDGE),
        Exercise("job_script", 4, judge_job_script),
        Exercise("report", 6, judge_report),
    ],
    tensorflow=True,
    seconds=300.0,
    target=target,
)
