"""Answers to lab 15 as students give them."""

import math

from distlab.labs.lab_15 import given, requeued_job, scaling_table
from distlab.labs.lab_15 import rent as rent_judge
from distlab.labs.lab_15.hints import Lab15Hint
from distlab.labs.lab_15.rent import Offer, RentRules
from distlab.labs.lab_15.scaling_table import StudyRun
from tests.labs.known_wrong import LabAnswers

ANSWERS = LabAnswers()
wrong, right = ANSWERS.wrong, ANSWERS.right
Hint = Lab15Hint
THREE_QUARTERS = 3 / 4


# Batch job

BATCH = """\
#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=2
#SBATCH --time=01:30:00
#SBATCH --output=%x-%j.out

set -e
python prepare.py
srun --kill-on-bad-exit=1 python train.py "$@"
python evaluate.py
"""
BATCH_BODY = BATCH.partition("set -e\n")[2]


def changed(script, *pairs):
    """The script with other lines; each must be in it."""
    for before, after in pairs:
        assert before in script, before
        script = script.replace(before, after)
    return script


def wrong_scripts(exercise, script, answers):
    """Wrong answers: title, (before, after), the hint, the share of the points."""
    for title, pair, hint, share in answers:
        ANSWERS.wrong_value(exercise, title, changed(script, pair), *hint, share=share)


wrong_scripts(
    "batch",
    BATCH,
    [
        ("empty_first_line", ("#!/bin/bash", "\n#!/bin/bash"), [Hint.EMPTY_FIRST_LINE], 0),
        ("no_interpreter", ("#!/bin/bash\n", ""), [Hint.REFUSED], 0),
        ("python_script", ("#!/bin/bash", "#!/usr/bin/env python"), [Hint.NOT_BASH], 0),
        ("space_before_equals", ("--nodes=4", "--nodes = 4"), [Hint.REFUSED], 0),
        ("misspelt_option", ("--ntasks-per-node", "--tasks-per-node"), [Hint.REFUSED], 0),
        ("node", ("--nodes=4", "--node=4"), [Hint.REFUSED], 0),
        ("hours_by_letter", ("01:30:00", "1.5h"), [Hint.REFUSED], 0),
        ("too_many_nodes", ("--nodes=4", "--nodes=40"), [Hint.REFUSED], 0),
        ("windows_lines", ("\n", "\r\n"), [Hint.REFUSED], 0),
        ("of_srun", ("#SBATCH --time", "#SBATCH --kill-on-bad-exit=1 --time"), [Hint.REFUSED], 0),
        ("late_time", ("set -e\n", "set -e\n#SBATCH --mem=4G\n"), [Hint.LATE_OPTION], 0),
        ("mpirun", ("srun --kill-on-bad-exit=1", "mpirun"), [Hint.NOT_SRUN], 0),
        ("srun_without_a_program", ('python train.py "$@"', ""), [Hint.STEP_REFUSED], 0),
        ("unknown_option_of_srun", ("--kill-on-bad-exit=1", "--kill-on-fail"), [Hint.STEP_REFUSED], 0),
        ("value_without_equals", ("-exit=1", "-exit 1"), [Hint.VALUE_IS_PROGRAM], 0),
        ("too_many_tasks", ("srun ", "srun --ntasks=80 "), [Hint.STEP_REFUSED], 0),
        ("syntax_error", ("set -e", "if true"), [Hint.BASH_SAYS], 0),
        ("waits_for_ever", ("set -e", "while true; do :; done"), [Hint.NEVER_ENDS], 0),
        ("eight_nodes", ("--nodes=4", "--nodes=8"), [Hint.NODES, Hint.RANKS], 0.5),
        (
            "eight_tasks_on_any_nodes",
            ("--nodes=4\n#SBATCH --ntasks-per-node=2", "--ntasks=8"),
            [Hint.NODES, Hint.RANKS],
            0.5,
        ),
        ("one_rank_per_node", ("#SBATCH --ntasks-per-node=2\n", ""), [Hint.RANKS_PER_NODE, Hint.RANKS], 0.5),
        ("minutes_and_seconds", ("01:30:00", "01:30"), [Hint.TIME], THREE_QUARTERS),
        ("half_past_one_day", ("01:30:00", "1-30"), [Hint.REFUSED], 0),
        ("no_time", ("#SBATCH --time=01:30:00\n", ""), [Hint.NO_TIME], THREE_QUARTERS),
        ("no_name", ("#SBATCH --job-name=train\n", ""), [Hint.LOG], THREE_QUARTERS),
        ("default_log", ("#SBATCH --output=%x-%j.out\n", ""), [Hint.LOG], THREE_QUARTERS),
        ("log_of_an_array", ("%x-%j.out", "%x-%A.log"), [Hint.LOG], THREE_QUARTERS),
        ("srun_missing", ("srun --kill-on-bad-exit=1 ", ""), [Hint.SRUN_MISSING, Hint.OTHERS_WAIT], 0.5),
        ("srun_everywhere", ("\npython ", "\nsrun python "), [Hint.SRUN_TOO_OFTEN], THREE_QUARTERS),
        ("not_prepared", ("python prepare.py\n", ""), [Hint.PROGRAMS, Hint.PROGRAMS_FIRST], 0.5),
        ("misspelt_program", ("prepare.py", "prepar.py"), [Hint.PROGRAMS, Hint.PROGRAMS_FIRST], 0.5),
        ("no_arguments", (' "$@"', ""), [Hint.ARGUMENTS], THREE_QUARTERS),
        ("all_in_one_word", ('"$@"', '"$*"'), [Hint.ARGUMENTS], THREE_QUARTERS),
        ("split_arguments", ('"$@"', "$@"), [Hint.ARGUMENTS_SPLIT], THREE_QUARTERS),
        ("arguments_for_all", ("prepare.py", 'prepare.py "$@"'), [Hint.ARGUMENTS], THREE_QUARTERS),
        ("eight_ranks_on_one_node", ("srun ", "srun --nodes=1 --ntasks=2 "), [Hint.RANKS], THREE_QUARTERS),
        ("goes_on", ("set -e\n", ""), [Hint.GOES_ON], THREE_QUARTERS),
        ("says_done", ("evaluate.py\n", "evaluate.py || echo failed\n"), [Hint.STATE_COMPLETED], THREE_QUARTERS),
        ("fails_always", ("evaluate.py\n", "evaluate.py\nexit 1\n"), [Hint.FAILS_ALWAYS], THREE_QUARTERS),
        ("waits_for_a_dead_rank", (" --kill-on-bad-exit=1", ""), [Hint.OTHERS_WAIT], THREE_QUARTERS),
    ],
)
ANSWERS.wrong_value("batch", "a_list_of_lines", BATCH.splitlines(), Hint.NO_TEXT)
ANSWERS.wrong_value("batch", "a_novel", BATCH + "# and so on\n" * 1000, Hint.TOO_LONG)
ANSWERS.solved("batch", BATCH, None)


def right_script(exercise, title, script):
    ANSWERS.right_answers[exercise].append((title, {exercise: script}))


right_script(
    "batch", "chained", changed(BATCH, ("set -e\n", ""), (".py\nsrun", ".py &&\nsrun"), ('"$@"\n', '"$@" &&\n'))
)
right_script(
    "batch", "or_exit", changed(BATCH, ("set -e\n", ""), (".py\n", ".py || exit 1\n"), ('"$@"\n', '"$@" || exit\n'))
)
right_script(
    "batch",
    "short",
    "#!/usr/bin/env bash\n#SBATCH -J train -N4 --ntasks-per-n 2 -t90 -o %x-%j.out\nset -euo pipefail\n" + BATCH_BODY,
)
right_script("batch", "flag", changed(BATCH, ("#!/bin/bash", "#!/bin/bash -e"), ("set -e\n", "")))
right_script("batch", "total", changed(BATCH, ("--ntasks-per-node=2", "--ntasks=8"), ("%x", "train"), ("=1 ", " ")))
right_script(
    "batch",
    "one_task",
    changed(BATCH, ("\npython", "\nsrun --nodes=1 --ntasks=1 python"), ("--kill-on-bad-exit=1", "-K")),
)
right_script(
    "batch", "last_wins", changed(BATCH, ("--nodes=4", "--nodes=7 # no:\n#SBATCH --nodes=4"), ("01:30:00", "0-01:30"))
)


# Scaling study

ARRAY = """\
#!/bin/bash
#SBATCH --job-name=scaling
#SBATCH --array=1,2,4,8%1
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --time=00:20:00
#SBATCH --output=%x-%A-%a.out

set -e
nodes=$SLURM_ARRAY_TASK_ID
srun --nodes=$nodes --ntasks=$nodes --kill-on-bad-exit=1 python train.py --result scaling/$nodes.json
"""
ARRAY_STEP = ARRAY.splitlines()[-1]
LOOP = changed(
    ARRAY,
    ("#SBATCH --array=1,2,4,8%1\n", ""),
    ("%A-%a", "%j"),
    ("nodes=$SLURM_ARRAY_TASK_ID\n", "for nodes in 1 2 4 8; do\n"),
    (".json\n", ".json\ndone\n"),
)
BY_LIST = changed(
    ARRAY,
    ("1,2,4,8%1", "0-3%1"),
    ("nodes=$SLURM_ARRAY_TASK_ID", "sizes=(1 2 4 8)\nnodes=${sizes[$SLURM_ARRAY_TASK_ID]}"),
)
ANSWERS.solved("array", ARRAY, None)
wrong_scripts(
    "array",
    ARRAY,
    [
        ("one_at_a_time", ("%1", ""), [Hint.AT_ONCE], THREE_QUARTERS),
        ("two_at_a_time", ("%1", "%2"), [Hint.AT_ONCE], THREE_QUARTERS),
        ("one_to_eight", ("1,2,4,8%1", "1-8%1"), [Hint.SIZES], THREE_QUARTERS),
        ("one_to_four", ("1,2,4,8%1", "1-4%1"), [Hint.SIZES], THREE_QUARTERS),
        ("three_sizes", ("1,2,4,8%1", "2,4,8%1"), [Hint.SIZES], THREE_QUARTERS),
        ("bad_range", ("1,2,4,8%1", "8-1%1"), [Hint.REFUSED], 0),
        ("spaces", ("1,2,4,8%1", "1, 2, 4, 8%1"), [Hint.REFUSED], 0),
        ("no_nodes", ("#SBATCH --nodes=8\n", ""), [Hint.STEP_REFUSED], 0),
        ("more_nodes", ("--nodes=8", "--nodes=16"), [Hint.ARRAY_TOO_MANY_NODES], THREE_QUARTERS),
        ("hours", ("00:20:00", "20:00:00"), [Hint.TIME], THREE_QUARTERS),
        ("seconds", ("00:20:00", "00:20"), [Hint.TIME], THREE_QUARTERS),
        ("no_limit", ("#SBATCH --time=00:20:00\n", ""), [Hint.NO_TIME], THREE_QUARTERS),
        ("one_log", ("%x-%A-%a.out", "%x.out"), [Hint.ONE_LOG], THREE_QUARTERS),
        ("log_per_array", ("%x-%A-%a.out", "%x-%A.out"), [Hint.ONE_LOG], THREE_QUARTERS),
        ("log_per_task", ("%x-%A-%a.out", "%x-%a.out"), [Hint.ONE_LOG], THREE_QUARTERS),
        ("all_nodes_always", ("--nodes=$nodes --ntasks=$nodes ", ""), [Hint.SIZES], THREE_QUARTERS),
        ("on_the_first_node", (ARRAY_STEP.partition("python")[0], ""), [Hint.ARRAY_RANKS, Hint.OTHERS_WAIT], 0.5),
        ("array_job_id", ("$SLURM_ARRAY_TASK_ID", "$SLURM_ARRAY_JOB_ID"), [Hint.STEP_REFUSED], 0),
        ("unset", ("$SLURM_ARRAY_TASK_ID", "$SLURM_ARRAY_TASK"), [Hint.STEP_REFUSED], 0),
        ("one_result", ("$nodes.json", "result.json"), [Hint.RESULT], THREE_QUARTERS),
        ("no_result", (" --result scaling/$nodes.json", ""), [Hint.RESULT], THREE_QUARTERS),
        ("no_training", (ARRAY_STEP, "echo $nodes"), [Hint.NO_TRAINING, Hint.PROGRAMS_FIRST], 0.5),
        ("says_done", (".json\n", ".json || echo failed\n"), [Hint.TASK_COMPLETED], THREE_QUARTERS),
        ("no_kill", (" --kill-on-bad-exit=1", ""), [Hint.OTHERS_WAIT], THREE_QUARTERS),
        ("fails_always", (".json\n", ".json\nexit 3\n"), [Hint.FAILS_ALWAYS], THREE_QUARTERS),
    ],
)
ANSWERS.wrong_value("array", "a_loop", LOOP, Hint.NO_ARRAY, Hint.NO_ARRAY, Hint.ALL_IN_ONE, Hint.PROGRAMS_FIRST)
ANSWERS.wrong_value(
    "array",
    "nodes_of_the_job",
    changed(ARRAY, ("--nodes=8", "--nodes=4"), ("1,2,4,8%1", "1,2,4%1")),
    Hint.ARRAY_NODES,
    Hint.SIZES,
    share=0.5,
)
ANSWERS.wrong_value(
    "array",
    "only_nodes",
    changed(
        ARRAY, (" --ntasks=$nodes", ""), ("#SBATCH --ntasks-per-node=1\n", "#SBATCH --ntasks-per-node=1 --exclusive\n")
    ),
    Hint.ARRAY_RANKS,
    share=THREE_QUARTERS,
)
right_script("array", "by_list", BY_LIST)
right_script(
    "array",
    "powers",
    changed(ARRAY, ("1,2,4,8%1", "0-3%1"), ("=$SLURM_ARRAY_TASK_ID", "=$((2 ** SLURM_ARRAY_TASK_ID))")),
)
right_script("array", "without_set", changed(ARRAY, ("set -e\n", ""), ("%A-%a", "%j"), ("-bad-exit=1", "-bad-exit")))
right_script(
    "array", "only_nodes_asked_for", changed(ARRAY, ("#SBATCH --ntasks-per-node=1\n", ""), (" --ntasks=$nodes", ""))
)
right_script("array", "only_tasks", changed(ARRAY, ("--nodes=$nodes ", "")))
right_script("array", "exec", changed(ARRAY, ("set -e\n", ""), ("srun", "exec srun"), ("--result ", "--result=")))


# Long job

LONG = """\
#!/bin/bash
#SBATCH --job-name=long
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=12:00:00
#SBATCH --signal=USR1@600
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.out

status=0
srun python train.py --checkpoints saved "$@" || status=$?
if [ $status -eq 85 ]; then scontrol requeue $SLURM_JOB_ID; fi
exit $status
"""
LONG_END = LONG.partition("status=0\n")[2]
ANSWERS.solved("long", LONG, None)
wrong_scripts(
    "long",
    LONG,
    [
        ("to_the_script", ("=USR1@600", "=B:USR1@600"), [Hint.NOTICE_TO_SCRIPT], THREE_QUARTERS),
        ("another_signal", ("=USR1@600", "=TERM@600"), [Hint.NOTICE_SIGNAL], THREE_QUARTERS),
        ("ten", ("=USR1@600", "=USR1@10"), [Hint.NOTICE_SECONDS], THREE_QUARTERS),
        ("default_time", ("=USR1@600", "=USR1"), [Hint.NOTICE_SECONDS], THREE_QUARTERS),
        ("clock_time", ("=USR1@600", "=USR1@10:00"), [Hint.REFUSED], 0),
        ("no_signal", ("#SBATCH --signal=USR1@600\n", ""), [Hint.NO_NOTICE], THREE_QUARTERS),
        ("no_requeue", ("#SBATCH --requeue\n", ""), [Hint.NO_REQUEUE], THREE_QUARTERS),
        ("overwrites", ("#SBATCH --open-mode=append\n", ""), [Hint.LOG_OVERWRITTEN], THREE_QUARTERS),
        ("log_without_number", ("%x-%j.out", "%x.out"), [Hint.LOG], THREE_QUARTERS),
        ("twelve_minutes", ("12:00:00", "12:00"), [Hint.TIME], THREE_QUARTERS),
        ("no_time", ("#SBATCH --time=12:00:00\n", ""), [Hint.NO_TIME], THREE_QUARTERS),
        ("one_node", ("#SBATCH --nodes=2\n", ""), [Hint.NODES, Hint.RANKS], 0.5),
        ("two_per_node", ("--ntasks-per-node=1", "--ntasks-per-node=2"), [Hint.RANKS_PER_NODE, Hint.RANKS], 0.5),
        ("kills", ("srun ", "srun --kill-on-bad-exit=1 "), [Hint.KILLS_SAVERS], THREE_QUARTERS),
        ("no_srun", ("srun ", ""), [Hint.SRUN_MISSING], THREE_QUARTERS),
        ("another_program", ("train.py", "main.py"), [Hint.PROGRAMS], THREE_QUARTERS),
        ("no_checkpoints", (" --checkpoints saved", ""), [Hint.ARGUMENTS], THREE_QUARTERS),
        ("on_failure", ("-eq 85", "-ne 0"), [Hint.QUEUED_ALWAYS], THREE_QUARTERS),
        ("at_least_85", ("-eq 85", "-ge 85"), [Hint.QUEUED_ALWAYS], THREE_QUARTERS),
        ("no_number", (" $SLURM_JOB_ID", ""), [Hint.WRONG_JOB], THREE_QUARTERS),
        ("by_name", ("$SLURM_JOB_ID", "$SLURM_JOB_NAME"), [Hint.WRONG_JOB], THREE_QUARTERS),
        ("another_job", ("scontrol requeue $SLURM_JOB_ID", 'sbatch "$0" "$@"'), [Hint.NEW_JOB], THREE_QUARTERS),
        ("ends_with_0", ("exit $status\n", ""), [Hint.STATUS_LOST], THREE_QUARTERS),
        ("one_for_all", ("exit $status\n", "[ $status -eq 0 ] || exit 1\n"), [Hint.STATUS_LOST], THREE_QUARTERS),
    ],
)
ANSWERS.wrong_value(
    "long",
    "ends_at_85",
    changed(LONG, ("status=0\n", "set -e\n"), (" || status=$?", "\nstatus=$?")),
    Hint.NOT_QUEUED,
    share=THREE_QUARTERS,
)
ANSWERS.wrong_value(
    "long",
    "queued_again_in_any_case",
    changed(LONG, ("if [ $status -eq 85 ]; then scontrol requeue $SLURM_JOB_ID; fi", "scontrol requeue $SLURM_JOB_ID")),
    Hint.QUEUED_ALWAYS,
    share=THREE_QUARTERS,
)
right_script(
    "long", "set_e_guarded", changed(LONG, ("status=0\n", "set -euo pipefail\nstatus=0\n"), ("srun", "srun --wait=60"))
)
right_script(
    "long", "plain", changed(LONG, ("status=0\n", ""), (" || status=$?", "\nstatus=$?"), ("USR1@600", "SIGUSR1@600"))
)
right_script(
    "long",
    "by_case",
    changed(LONG, ("=USR1", "=10"), ("if [ $status -eq 85 ]; then", "case $status in 85)"), ("; fi", ";; esac")),
)
right_script(
    "long",
    "last_command",
    changed(
        LONG,
        ("status=0\n", ""),
        (
            LONG_END,
            'srun python train.py --checkpoints saved "$@"\ncode=$?\n'
            '(( code != 85 )) || scontrol requeue "$SLURM_JOBID"\nexit $code\n',
        ),
    ),
)


# The job that is queued again

START_AGAIN = 85
ANSWERS.solved("attempt", requeued_job.attempt)


@right("attempt")
async def by_a_while_loop(rank, job):
    step = job["saved"]
    while step < job["steps"]:
        step += 1
        await given.train_step(rank, job, step)
        anybody = await given.add_up(rank, 1.0 if given.has_notice(rank, job) else 0.0)
        if anybody and step != job["steps"]:
            if not rank.index:
                await given.save(rank, job, step)
            await given.add_up(rank, 1)
            return START_AGAIN
    return 0


@right("attempt")
async def saves_after_the_loop(rank, job):
    step = job["saved"]
    notices = 0
    while step < job["steps"] and not notices:
        step = step + 1
        await given.train_step(rank, job, step)
        notices = await given.add_up(rank, int(given.has_notice(rank, job)))
    if step == job["steps"]:
        return 0
    if rank.index == 0:
        await given.save(rank, job, step)
    await given.add_up(rank, 0)
    return START_AGAIN


def attempt_with(
    first=1, own=False, saver=0, save_offset=0, saves=1, waits=True, status=START_AGAIN, end=0, at_end=False, late=0
):
    """The right program with changes."""

    async def attempt(rank, job):
        pending = None
        for step in range(job["saved"] + first, job["steps"] + 1):
            await given.train_step(rank, job, step)
            has_notice = given.has_notice(rank, job)
            notices = has_notice if own else await given.add_up(rank, has_notice)
            if notices and pending is None:
                pending = step + late
            if pending is not None and step >= pending and (at_end or step < job["steps"]):
                if saver in (rank.index, None):
                    for _ in range(saves):
                        await given.save(rank, job, step + save_offset)
                if waits:
                    await given.add_up(rank, 0)
                return status
        return end

    return attempt


for title, attempt, hints, share in (
    ("own_notice_only", attempt_with(own=True), [Hint.SAVES_ALONE] * 3, 0.25),
    ("all_save", attempt_with(saver=None), [Hint.SAVED_BY_OTHERS] * 3, 0.25),
    ("step_before", attempt_with(save_offset=-1), [Hint.SAVED_STEP] * 3, 0.25),
    ("step_after", attempt_with(save_offset=1), [Hint.SAVED_STEP] * 3, 0.25),
    ("saves_twice", attempt_with(saves=2), [Hint.SAVED_OFTEN] * 3, 0.25),
    ("never_saves", attempt_with(saves=0), [Hint.NOT_SAVED] * 3, 0.25),
    ("nobody_waits", attempt_with(waits=False), [Hint.LEFT_EARLY] * 3, 0.25),
    ("status_0", attempt_with(status=0), [Hint.STATUS_0] * 3, 0.25),
    ("status_1", attempt_with(status=1), [Hint.STATUS_0] * 3, 0.25),
    ("a_step_later", attempt_with(late=1), [Hint.TOO_LATE] * 3, 0.25),
    ("always_85", attempt_with(end=START_AGAIN), [Hint.STATUS_85] * 2, 0.5),
    ("saves_at_the_end_too", attempt_with(at_end=True), [Hint.SAVED_AT_END], 0.75),
    ("a_step_again", attempt_with(first=0), [Hint.STEP_TWICE] * 4, 0),
    ("a_step_lost", attempt_with(first=2), [Hint.STEP_LOST] * 4, 0),
):
    ANSWERS.wrong_value("attempt", title, attempt, *hints, share=share)


@wrong("attempt", Hint.STEP_TWICE, share=0.75)
async def from_the_beginning(rank, job):
    return await requeued_job.attempt(rank, job | {"saved": 0})


@wrong("attempt", *[Hint.TOO_LATE] * 3, share=0.25)
async def forgets_the_notice(rank, job):
    for step in range(job["saved"] + 1, job["steps"] + 1):
        await given.train_step(rank, job, step)
    return 0


@wrong("attempt", *[Hint.TOO_EARLY] * 4)
async def stops_at_once(rank, job):
    return START_AGAIN


@wrong("attempt", *[Hint.NO_STATUS] * 4)
async def truth_value(rank, job):
    return bool(await requeued_job.attempt(rank, job))


# Scaling table


def table_with(change):
    """The right table with some names changed by a function of the runs and the right table."""

    def read_table(runs):
        own = [StudyRun(**run) for run in runs]
        table = scaling_table.read_table(own)
        return table | change(own, table)

    return read_table


def sizes_of(runs):
    return [*scaling_table.speedups(runs)]


def step_ratios(runs):
    steps = {runs[place].nodes: runs[place].step for place in scaling_table.trusted(runs)}
    return [steps[1] / steps[nodes] for nodes in sizes_of(runs)]


def in_order_of_the_list(runs, numbers):
    places = sorted(scaling_table.trusted(runs), key=lambda place: runs[place].nodes)
    by_place = dict(zip(places, numbers, strict=True))
    return [by_place[place] for place in sorted(places)]


def gains_of(runs):
    return scaling_table.speedups(runs)


ANSWERS.solved("read_table", table_with(lambda runs, table: {}), lambda runs: dict.fromkeys(scaling_table.NAMES))
for title, change, hint in (
    (
        "all_complete",
        lambda runs, table: {"trusted": [n for n, run in enumerate(runs) if run.state == "COMPLETED"]},
        Hint.DISTURBED_TRUSTED,
    ),
    (
        "alone_whatever_the_state",
        lambda runs, table: {"trusted": [n for n in range(len(runs)) if not scaling_table.overlapping(runs, n)]},
        Hint.FAILED_TRUSTED,
    ),
    (
        "touching_is_together",
        lambda runs, table: {
            "trusted": [
                n
                for n in table["trusted"]
                if not any(run.start == runs[n].end or run.end == runs[n].start for run in runs)
            ]
        },
        Hint.TRUSTED_LEFT_OUT,
    ),
    ("from_1", lambda runs, table: {"trusted": [n + 1 for n in table["trusted"]]}, Hint.TRUSTED_FROM_1),
    ("nodes_of_runs", lambda runs, table: {"trusted": [[n] for n in table["trusted"]]}, Hint.NO_LIST),
    (
        "by_nodes",
        lambda runs, table: {"trusted": sorted(table["trusted"], key=lambda n: runs[n].nodes)},
        Hint.TRUSTED_ORDER,
    ),
    ("ratio_of_steps", lambda runs, table: {"speedup": step_ratios(runs)}, Hint.TIMES_RATIO),
    ("upside_down", lambda runs, table: {"speedup": [1 / gain for gain in table["speedup"]]}, Hint.UPSIDE_DOWN),
    ("list_order", lambda runs, table: {"speedup": in_order_of_the_list(runs, table["speedup"])}, Hint.TABLE_ORDER),
    (
        "percent",
        lambda runs, table: {"efficiency": [100 * item for item in table["efficiency"]]},
        Hint.EFFICIENCY_OTHERWISE,
    ),
    ("speedup_again", lambda runs, table: {"efficiency": table["speedup"]}, Hint.EFFICIENCY_IS_SPEEDUP),
    (
        "divided_twice",
        lambda runs, table: {
            "efficiency": [item / n for item, n in zip(table["efficiency"], sizes_of(runs), strict=True)]
        },
        Hint.TIMES_RATIO,
    ),
    ("without_one_node", lambda runs, table: {"efficiency": table["efficiency"][1:]}, Hint.TABLE_LENGTH),
    ("rates", lambda runs, table: {"speedup": [640 * gain for gain in table["speedup"]]}, Hint.SPEEDUP_OTHERWISE),
    ("by_all_nodes", lambda runs, table: {"pays": scaling_table._overall(gains_of(runs))}, Hint.PAYS_OVERALL),
    ("last_that_pays", lambda runs, table: {"pays": scaling_table._last(gains_of(runs))}, Hint.PAYS_LATER),
    ("fastest", lambda runs, table: {"pays": max(sizes_of(runs))}, Hint.PAYS_FASTEST),
    ("no_number", lambda runs, table: {"pays": str(table["pays"])}, Hint.PAYS_OTHERWISE),
    ("one_more", lambda runs, table: {"pays": table["pays"] + 1}, Hint.PAYS_OTHERWISE),
    (
        "first_that_does_not_pay",
        lambda runs, table: {"pays": next((n for n in sizes_of(runs) if n > table["pays"]), table["pays"])},
        Hint.PAYS_NEXT,
    ),
):
    ANSWERS.wrong_value("read_table", title, table_with(change), hint, share=THREE_QUARTERS)


@wrong("read_table", Hint.NO_TABLE)
def only_pays(runs):
    return table_with(lambda own, table: {})(runs)["pays"]


@right("read_table")
def by_numpy(runs):
    import numpy as np

    table = table_with(lambda own, table: {})(runs)
    return table | {"speedup": np.array(table["speedup"]), "efficiency": np.array(table["efficiency"])}


# Rent


def rent_with(rules=None, change=None):
    """The right choice under other rules, or changed afterwards."""

    def rent(offers, images, deadline):
        choice = rent_judge.rent([Offer(**offer) for offer in offers], images, deadline, rules or RentRules())
        answer = None if choice is None else choice._asdict()
        return answer if change is None or answer is None else answer | change(answer)

    return rent


ANSWERS.solved("rent", rent_with())
for title, rules, hint, count in (
    ("fully_used", RentRules(efficiency=False), Hint.RENT_NO_EFFICIENCY, 4),
    ("no_queue", RentRules(waits="never"), Hint.RENT_NO_WAIT, 3),
    ("one_queue", RentRules(waits="once"), Hint.RENT_ONE_WAIT, 2),
    ("a_queue_more", RentRules(waits="once more"), Hint.RENT_MORE_WAITS, 2),
    ("paid_queue", RentRules(pays_wait=True), Hint.RENT_WAIT_PAID, 2),
    ("one_node", RentRules(pays_nodes=False), Hint.RENT_ONE_NODE, 2),
    ("whole_limit", RentRules(pays_limit=True), Hint.RENT_WHOLE_LIMIT, 2),
    ("no_second_job", RentRules(may_exceed=False), Hint.RENT_LIMIT_FORBIDS, 1),
    ("first_done", RentRules(by="done"), Hint.RENT_FASTEST, 1),
    ("before_the_deadline", RentRules(at_deadline=False), Hint.RENT_DEADLINE, 1),
):
    ANSWERS.wrong_value("rent", title, rent_with(rules), *[hint] * count, share=1 - count / 4)
for title, change, hint in (
    ("in_seconds", lambda answer: {"done": 3600 * answer["done"]}, Hint.RENT_UNITS),
    ("from_now_on", lambda answer: {"done": answer["done"] - 0.5}, Hint.RENT_DONE),
    ("more_expensive", lambda answer: {"cost": 1.1 * answer["cost"]}, Hint.RENT_COST),
):
    ANSWERS.wrong_value("rent", title, rent_with(change=change), hint, share=THREE_QUARTERS)


@wrong("rent", Hint.NO_CHOICE)
def only_the_name(offers, images, deadline):
    return (rent_with()(offers, images, deadline) or {"name": "none"})["name"]


@wrong("rent", Hint.NOTHING_FITS, share=THREE_QUARTERS)
def always_something(offers, images, deadline):
    return rent_with()(offers, images, deadline) or rent_with()(offers, images, math.inf)


@wrong("rent", Hint.RENT_CHEAPEST, Hint.RENT_CHEAPEST, share=0.5)
def whenever_it_ends(offers, images, deadline):
    return rent_with()(offers, images, math.inf)


@wrong("rent", Hint.RENT_CHOICE, share=THREE_QUARTERS)
def the_second_cheapest(offers, images, deadline):
    own = [Offer(**offer) for offer in offers]
    in_time = [choice for choice in rent_judge.choices(own, images) if choice.done <= deadline]
    in_time.sort(key=lambda choice: choice.cost)
    return in_time[min(1, len(in_time) - 1)]._asdict() if in_time else None


@right("rent")
def sorted_by_cost(offers, images, deadline):
    in_time = []
    for offer in offers:
        for nodes in offer["efficiency"]:
            seconds = images / offer["images_per_second"] / nodes / offer["efficiency"][nodes]
            waits = offer["wait"] * math.ceil(seconds / 3600 / offer["limit"])
            cost = seconds / 3600 * offer["price"] * nodes
            in_time.append({"cost": cost, "nodes": nodes, "name": offer["name"], "done": waits + seconds / 3600})
    in_time = [choice for choice in in_time if choice["done"] <= deadline]
    return min(in_time, key=lambda choice: choice["cost"]) if in_time else None
