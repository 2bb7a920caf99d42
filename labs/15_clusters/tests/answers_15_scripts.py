"""Job scripts as students write them, for lab 15."""

from lab_15.hints import Lab15Hint

from tests.distlab.labs.known_wrong import LabAnswers

ANSWERS = LabAnswers()
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


BASH_SAYS_TWICE = [Hint.BASH_COMPLAINS, Hint.PROGRAMS, Hint.BASH_COMPLAINS, Hint.PROGRAMS_FIRST]
BRACKET = "python prepare.py\nif [ $? -ne 0]; then exit 1; fi\n"
wrong_scripts(
    "batch",
    BATCH,
    [
        ("empty_first_line", ("#!/bin/bash", "\n#!/bin/bash"), [Hint.EMPTY_FIRST_LINE], 0),
        ("no_interpreter", ("#!/bin/bash\n", ""), [Hint.REFUSED], 0),
        ("python_script", ("#!/bin/bash", "#!/usr/bin/env python"), [Hint.NOT_BASH], 0),
        ("space_before_equals", ("--nodes=4", "--nodes = 4"), [Hint.REFUSED], 0),
        ("misspelt_option", ("--ntasks-per-node", "--tasks-per-nodes"), [Hint.REFUSED], 0),
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
        ("half_past_one_day", ("01:30:00", "1-30"), [Hint.REFUSED_TIME], 0),
        ("no_time", ("#SBATCH --time=01:30:00\n", ""), [Hint.NO_TIME], THREE_QUARTERS),
        ("seconds", ("01:30:00", "5400"), [Hint.REFUSED_TIME], 0),
        ("ninety_hours", ("01:30:00", "90:00:00"), [Hint.REFUSED_TIME], 0),
        ("without_limit", ("01:30:00", "0"), [Hint.REFUSED], 0),
        (
            "an_array",
            ("#SBATCH --nodes=4\n", "#SBATCH --nodes=4\n#SBATCH --array=1-4\n"),
            [Hint.AN_ARRAY],
            THREE_QUARTERS,
        ),
        ("ends_after_a_second", ("--kill-on-bad-exit=1", "--wait=1"), [Hint.OTHERS_GO_ON], THREE_QUARTERS),
        ("no_python", ("srun --kill-on-bad-exit=1 python", "srun --kill-on-bad-exit=1"), [Hint.NO_PYTHON], 0),
        ("no_name", ("#SBATCH --job-name=train\n", ""), [Hint.LOG_NAME], THREE_QUARTERS),
        ("log_folder", ("%x-%j.out", "logs/%x-%j.out"), [Hint.LOG_OTHERWISE], THREE_QUARTERS),
        ("space_in_sbatch", ("#SBATCH --job", "# SBATCH --job"), [Hint.COMMENT_OPTION], THREE_QUARTERS),
        ("indented", ("#SBATCH --time", "  #SBATCH --time"), [Hint.COMMENT_OPTION], THREE_QUARTERS),
        ("tasks_on_any_node", ("--ntasks-per-node=2", "--ntasks=8"), [Hint.RANKS_UNEVEN], THREE_QUARTERS),
        ("four_nodes_or_more", ("--nodes=4", "--nodes=2-4"), [Hint.NODES], THREE_QUARTERS),
        ("at_least_four_nodes", ("--nodes=4", "--nodes=4-8"), [Hint.NODES, Hint.RANKS], 0.5),
        ("misspelt_command", ("python evaluate", "pyhton evaluate"), BASH_SAYS_TWICE, 0.5),
        ("bracket", ("set -e\npython prepare.py\n", BRACKET), [Hint.BASH_COMPLAINS, Hint.GOES_ON], THREE_QUARTERS),
        ("default_log", ("#SBATCH --output=%x-%j.out\n", ""), [Hint.LOG], THREE_QUARTERS),
        ("log_of_an_array", ("%x-%j.out", "%x-%A.log"), [Hint.LOG_OTHERWISE], THREE_QUARTERS),
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
KILL_BY_VARIABLE = "set -e\nexport SLURM_KILL_BAD_EXIT=1\n"
VARIABLES = (
    "echo $SLURM_CPUS_ON_NODE $SLURM_JOB_CPUS_PER_NODE $SLURM_TASKS_PER_NODE "
    "$SLURM_SUBMIT_HOST $SLURM_JOB_USER $SLURM_CLUSTER_NAME\n"
)


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
right_script(
    "batch", "total", changed(BATCH, ("--nodes=4\n", "--ntasks=8\n"), ("%x", "train"), ("-bad-exit=1 ", "-bad-exit "))
)
right_script("batch", "second_name", changed(BATCH, ("--ntasks-per-node", "--tasks-per-node")))
right_script("batch", "number_by_J", changed(BATCH, ("%j", "%J")))
right_script(
    "batch", "kills_by_variable", changed(BATCH, (" --kill-on-bad-exit=1", ""), ("set -e\n", KILL_BY_VARIABLE))
)
right_script(
    "batch",
    "variables",
    changed(
        BATCH,
        ("#SBATCH --nodes", "#SBATCH --cpus-per-task=4\n#SBATCH --nodes"),
        ("set -e\n", "set -euo pipefail\nexport OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\n" + VARIABLES),
    ),
)
right_script("batch", "from_four_to_four", changed(BATCH, ("--nodes=4", "--nodes=4-4")))
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
        ("hours", ("00:20:00", "20:00:00"), [Hint.TIME_OTHERWISE], THREE_QUARTERS),
        ("seconds", ("00:20:00", "00:20"), [Hint.TIME], THREE_QUARTERS),
        ("no_limit", ("#SBATCH --time=00:20:00\n", ""), [Hint.NO_TIME], THREE_QUARTERS),
        ("range_of_nodes", ("--nodes=8", "--nodes=1-8"), [Hint.NODES], THREE_QUARTERS),
        ("no_folder", ("%x-%A-%a", "logs/%x-%A-%a"), [Hint.NO_FOLDER], THREE_QUARTERS),
        ("cancels", (".json\n", ".json || { scancel $SLURM_ARRAY_JOB_ID; exit 1; }\n"), [Hint.CANCELS], THREE_QUARTERS),
        ("one_log", ("%x-%A-%a.out", "%x.out"), [Hint.ONE_LOG], THREE_QUARTERS),
        ("log_per_array", ("%x-%A-%a.out", "%x-%A.out"), [Hint.ONE_LOG], THREE_QUARTERS),
        ("log_per_task", ("%x-%A-%a.out", "%x-%a.out"), [Hint.ONE_LOG], THREE_QUARTERS),
        ("all_nodes_always", ("--nodes=$nodes --ntasks=$nodes ", ""), [Hint.SIZES], THREE_QUARTERS),
        ("on_the_first_node", (ARRAY_STEP.partition("python")[0], ""), [Hint.ARRAY_RANKS, Hint.OTHERS_WAIT], 0.5),
        ("array_job_id", ("$SLURM_ARRAY_TASK_ID", "$SLURM_ARRAY_JOB_ID"), [Hint.STEP_REFUSED], 0),
        ("unset", ("$SLURM_ARRAY_TASK_ID", "$SLURM_ARRAY_TASK"), [Hint.EMPTY_VALUE], 0),
        ("no_python", ("python train.py", "./train.py"), [Hint.NO_PYTHON], 0),
        ("a_list", ("$SLURM_ARRAY_TASK_ID", '"[1, 2, 4, 8]"'), [Hint.STEP_REFUSED], 0),
        ("ends_after_a_minute", ("--kill-on-bad-exit=1", "-W 60"), [Hint.OTHERS_GO_ON], THREE_QUARTERS),
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
right_script("array", "in_the_folder_of_results", changed(ARRAY, ("%x-%A-%a", "scaling/%A-%a")))
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
        ("eleven_minutes", ("=USR1@600", "=USR1@660"), [Hint.NOTICE_OTHERWISE], THREE_QUARTERS),
        ("default_time", ("=USR1@600", "=USR1"), [Hint.NOTICE_OTHERWISE], THREE_QUARTERS),
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
        ("waits_a_second", ("srun ", "srun --wait=1 "), [Hint.WAITS_TOO_SHORT], THREE_QUARTERS),
        ("waits_a_minute", ("srun ", "srun -W 60 "), [Hint.WAITS_TOO_SHORT], THREE_QUARTERS),
        ("waits_by_variable", ("srun ", "SLURM_WAIT=30 srun "), [Hint.WAITS_TOO_SHORT], THREE_QUARTERS),
        ("no_srun", ("srun ", ""), [Hint.SRUN_MISSING], THREE_QUARTERS),
        ("without_quotation_marks", ('"$@"', "$@"), [Hint.ARGUMENTS_SPLIT], THREE_QUARTERS),
        ("two_arguments_split", ('"$@"', "$1 $2"), [Hint.ARGUMENTS], THREE_QUARTERS),
        ("two_arguments", ('"$@"', '"$1" "$2"'), [Hint.ARGUMENTS], THREE_QUARTERS),
        ("ten_past_twelve", ("12:00:00", "12:10:00"), [Hint.TIME_OTHERWISE], THREE_QUARTERS),
        ("no_spaces_in_brackets", ("[ $status", "[$status"), [Hint.BASH_COMPLAINS, Hint.NOT_QUEUED], THREE_QUARTERS),
        ("bracket", (" 85 ]", " 85]"), [Hint.BASH_COMPLAINS, Hint.NOT_QUEUED], THREE_QUARTERS),
        (
            "spaces_at_equals",
            ("|| status=$?", "|| status = $?"),
            [Hint.BASH_COMPLAINS, Hint.NOT_QUEUED_LOST],
            THREE_QUARTERS,
        ),
        ("misspelt_scontrol", ("scontrol", "scontol"), [Hint.BASH_COMPLAINS, Hint.NOT_QUEUED], THREE_QUARTERS),
        ("another_status", ("-eq 85", "-eq 58"), [Hint.NOT_QUEUED_OTHER], THREE_QUARTERS),
        ("into_a_file", ('"$@" ||', '"$@" | tee log ||'), [Hint.NOT_QUEUED_LOST], THREE_QUARTERS),
        ("held", ("scontrol requeue ", "scontrol requeuehold "), [Hint.HELD], THREE_QUARTERS),
        ("an_array", ("#SBATCH --requeue\n", "#SBATCH --requeue --array=0\n"), [Hint.AN_ARRAY], THREE_QUARTERS),
        ("no_fi", ("; fi\n", "\n"), [Hint.BASH_COMPLAINS, Hint.STATUS_LOST], THREE_QUARTERS),
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
    "long", "set_e_guarded", changed(LONG, ("status=0\n", "set -euo pipefail\nstatus=0\n"), ("srun", "srun --wait=600"))
)
right_script("long", "waits_for_ever", changed(LONG, ("srun", "srun --wait=0"), ('saved "$@"', 'saved "${@}"')))
right_script(
    "long", "waits_five_minutes", changed(LONG, ("srun", "srun -W300"), ("--checkpoints saved", "--checkpoints=saved"))
)
right_script("long", "arguments_first", changed(LONG, ('--checkpoints saved "$@"', '"$@" --checkpoints saved')))
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
