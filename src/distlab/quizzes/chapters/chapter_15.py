"""Clusters: job scripts and their states, who runs where, dead nodes and time limits, slow networks."""

from distlab import costs
from distlab.cluster_spec import slurm
from distlab.quizzes.item import Item, Wrong, number, one_number_of, one_of
from distlab.quizzes.numbers import Numbers, figure


def state_of_a_job(numbers: Numbers) -> Item:
    """Which state has a job that failed?"""
    strict = numbers.pick("strict", (True, False))
    nodes = numbers.pick("nodes", (2, 3, 4))
    lines = [
        "#!/bin/bash",
        f"#SBATCH --nodes={nodes}",
        *(["set -e"] if strict else []),
        "srun python train.py",
        'echo "done"',
    ]
    right, wrong = ("FAILED", "COMPLETED") if strict else ("COMPLETED", "FAILED")
    return one_of(
        "The program of this job script ends with an error. Which state has the job at the end?",
        right,
        "The state of a job is the status of the script's last command; with `set -e` the script ends at the first "
        "that fails.",
        Wrong(wrong, "The program for the script", "Ask which command is the last one that runs."),
        Wrong("PENDING", "Queued again", "Nothing in the script asks for the queue."),
        Wrong("TIMEOUT", "The time limit", "An error is not a time limit."),
        block="\n".join(lines),
    )


def where_it_runs(numbers: Numbers) -> Item:
    """Where does a command run?"""
    nodes = numbers.pick("nodes", (2, 3, 4))
    places = {
        "in the shell that `salloc` has started, without `srun`": "On the login node",
        "in a batch script, without `srun`": "On the first node of the allocation",
        "in a batch script, after `srun`": f"On all {nodes} nodes",
    }
    case = numbers.pick("case", tuple(places))
    wrong = (
        Wrong(place, f"As {each}".replace("`", ""), "Only `srun` starts tasks on the nodes.")
        for each, place in places.items()
        if each != case
    )
    return one_of(
        f"A job has {nodes} nodes with one task each, on the cluster of the course. `python train.py` stands {case}. "
        "Where does it run?",
        places[case],
        "`salloc` and `sbatch` reserve nodes; a batch script runs on the first; `srun` starts a task on each.",
        *wrong,
        Wrong(
            "On the node that has least to do",
            "The system chooses",
            "The scheduler chooses nodes for jobs, not for commands.",
        ),
    )


def lines_of_the_log(numbers: Numbers) -> Item:
    """How many tasks does a step start?"""
    nodes = numbers.pick("nodes", (2, 3, 4))
    per_node = numbers.pick("per_node", (2, 4, 8))
    command = numbers.pick("command", ("srun python hello.py", "python hello.py"))
    tasks = len([(node, task) for node in range(nodes) for task in range(per_node)])
    right, wrong = (tasks, 1) if command.startswith("srun") else (1, tasks)
    return number(
        f"A batch script has `#SBATCH --nodes={nodes} --ntasks-per-node={per_node}` and one command, `{command}`, "
        "which prints one line. How "
        "many lines has the log?",
        right,
        "lines",
        "`srun` starts all tasks of a step; without it a command runs once, on the first node.",
        Wrong(wrong, "srun or not", "Ask who starts the tasks."),
        Wrong(nodes, "One per node", "The tasks count, not the nodes."),
        Wrong(nodes + per_node, "Added", "Each node has that many tasks."),
        exact=True,
    )


def time_limit(numbers: Numbers) -> Item:
    """Which time limit holds?"""
    top, late, line = (
        numbers.pick(name, values) for name, values in (("top", (10, 20, 30)), ("late", (480, 600)), ("line", (60, 90)))
    )
    on_line = numbers.pick("on the command line", (True, False))
    command = f"sbatch --time={line} job.sbatch" if on_line else "sbatch job.sbatch"
    return one_number_of(
        f"The script below is submitted with `{command}`. Times are in minutes. How long may the job run?",
        line if on_line else top,
        "minutes",
        "`sbatch` reads options up to the first command only, and an option on the command line wins.",
        Wrong(late, "The last one wins", "For the shell that line is a comment, and `sbatch` never sees it."),
        Wrong(
            top if on_line else line, "Script or command line", "An option on the command line wins over the script."
        ),
        Wrong(top + late, "Added up", "Options replace one another."),
        exact=True,
        block=f"#!/bin/bash\n#SBATCH --time={top}\nsrun python prepare.py\n#SBATCH --time={late}\nsrun python train.py",
    )


def jobs_of_an_array(numbers: Numbers) -> Item:
    """How many jobs of an array run at once?"""
    tasks = numbers.pick("tasks", (6, 8, 12))
    at_once = numbers.pick("at_once", (2, 3, 4))
    minutes = numbers.pick("minutes", (5, 10))
    return number(
        f"`#SBATCH --array=1-{tasks}%{at_once}`: each task takes {minutes} minutes, and enough nodes are free. After "
        "how many minutes is the "
        "last one done?",
        -(-tasks // at_once) * minutes,
        "minutes",
        f"After the percent sign is how many tasks may run at a time: {at_once}.",
        Wrong(minutes, "All at once", "The percent sign limits how many run at a time."),
        Wrong(tasks * minutes, "One after another", "Count the rounds that are needed."),
        Wrong(at_once * minutes, "The limit as the number", "The limit says how many run side by side."),
        exact=True,
    )


def host_of_a_rank(numbers: Numbers) -> Item:
    """On which node is a rank?"""
    names = numbers.pick("names", ("node[1-3]", "node[08-10]", "gpu[4,7,9]"))
    per_node = numbers.pick("per_node", (2, 3, 4))
    rank = numbers.pick("rank", (1, 4, 5))
    environment = {
        "SLURM_STEP_NODELIST": names,
        "SLURM_STEP_TASKS_PER_NODE": f"{per_node}(x3)",
        "SLURM_PROCID": str(rank),
        "SLURM_JOB_ID": "1",
        "SLURM_STEP_ID": "0",
    }
    cluster, _ = slurm.slurm_task(environment)
    hosts = [address.rpartition(":")[0] for address in cluster["worker"]]
    nodes = list(dict.fromkeys(hosts))
    others = (node for node in nodes if node != hosts[rank])
    return one_of(
        "`cluster_spec.from_slurm()` reads these variables. On which node does it expect this task?",
        hosts[rank],
        f"Tasks are numbered node by node, {per_node} on each: rank {rank} is number {rank % per_node} of its node.",
        *(Wrong(node, "Another way to count", "Count the ranks from 0, node after node.") for node in others),
        Wrong("It cannot be known", "No address", "Slurm's variables name the nodes and the tasks on each."),
        block="\n".join(f"{name}={value}" for name, value in list(environment.items())[:3]),
    )


def steps_done_twice(numbers: Numbers) -> Item:
    """How many steps does a job do twice?"""
    every = numbers.pick("every", (5, 10, 20))
    step = numbers.pick("step", (37, 58, 93))
    case = numbers.pick(
        "case", ("A node dies", "The time limit is near, Slurm sends SIGUSR1, and the workers save together")
    )
    right = step % every if case == "A node dies" else 0
    return one_number_of(
        f"A job saves every {every} steps and has `--requeue`. {case}, after step {step}. How many steps are done "
        "twice?",
        right,
        "steps",
        "Without a warning the steps since the last save are lost; with one save after a notice nothing is.",
        Wrong(0 if right else step % every, "With or without a warning", "Ask whether there was time to save."),
        Wrong(step, "From the start", "The job resumes from the newest whole checkpoint."),
        Wrong(every, "A whole interval", "That is the most that can be lost."),
        exact=True,
    )


def predicted_step(numbers: Numbers) -> Item:
    """How long is a step on a slow network?"""
    nodes = numbers.pick("nodes", (2, 3, 4))
    computing = numbers.pick("computing", (5, 20, 50))
    megabytes = numbers.pick("megabytes", (1, 2, 5))
    rate = numbers.pick("rate", (100, 200))
    exchange = float(costs.all_reduce("ring", nodes, 1e6 * megabytes).seconds(2e-3, 8e-6 / rate))
    bits = float(costs.all_reduce("ring", nodes, 1e6 * megabytes).seconds(2e-3, 1e-6 / rate))
    return number(
        f"A step computes for {computing} ms on one node. {nodes} nodes ring all-reduce {megabytes} MB over links with "
        f"{rate} Mbit/s and a "
        "latency of 2 ms; nothing overlaps. How many ms does a step take by the formula?",
        computing / 1e3 + exchange,
        "ms",
        f"The all-reduce takes {figure(1e3 * exchange)} ms: 2(p − 1) latencies, and 2(p − 1)/p times the bytes.",
        Wrong(exchange, "No computing", "A step also computes."),
        Wrong(computing / 1e3 + bits, "Bits for bytes", "A byte has 8 bits."),
        Wrong(computing / 1e3 / nodes + exchange, "Computing divided", "Every node trains a batch of its own."),
        scale=1e3,
    )


def lever(numbers: Numbers) -> Item:
    """Which lever helps on this network?"""
    line = numbers.pick("line", ("100 Mbit/s and a latency of 50 µs", "10 Gbit/s and a latency of 2 ms"))
    kilobytes = numbers.pick("kilobytes", (400, 800))
    gradients = numbers.pick("gradients", (40, 60))
    latency, per_byte = (50e-6, 8e-8) if line.startswith("100 M") else (2e-3, 8e-10)

    def seconds(count: int, array_bytes: float) -> float:
        return count * float(costs.all_reduce("ring", 8, array_bytes / count).seconds(latency, per_byte))

    total = 1e3 * kilobytes
    saved = {
        "Tensor fusion": seconds(gradients, total) - seconds(1, total),
        "fp16 compression": seconds(gradients, total) - seconds(gradients, total / 2),
    }
    best, second = sorted(saved, key=lambda name: -saved[name])
    share = {name: 100 * saved[name] / seconds(gradients, total) for name in saved}
    return one_of(
        f"8 ranks all-reduce {gradients} gradients of together {kilobytes} kB one after the other, on links with "
        f"{line}. What saves most time?",
        best,
        f"It saves {figure(share[best])} % of the exchange. With a long delay messages decide, with a low rate bytes "
        "do.",
        Wrong(second, "The other part of the time", f"It saves {figure(share[second])} %."),
        Wrong("A smaller batch", "Less work", "The gradient has as many bytes, whatever the batch."),
        Wrong("More ranks", "More machines", "They add messages and save no bytes."),
    )


def accumulated_steps(numbers: Numbers) -> Item:
    """How long is a batch with gradient accumulation?"""
    computing = numbers.pick("computing", (5, 10, 20))
    exchange = numbers.pick("exchange", (40, 80, 120))
    batches = numbers.pick("batches", (4, 8))
    return one_number_of(
        f"A batch computes for {computing} ms, and the all-reduce takes {exchange} ms. Gradients of {batches} batches "
        "are added up before each "
        "all-reduce. How many ms does a batch take on average?",
        (batches * computing + exchange) / batches,
        "ms",
        f"The all-reduce is paid once per {batches} batches; the price is a global batch {batches} times as large.",
        Wrong(computing + exchange, "Every batch", "That is so without accumulation."),
        Wrong((computing + exchange) / batches, "All divided", "Each batch is computed as before."),
        Wrong(batches * computing + exchange, "The whole step", "That is the time of all batches together."),
    )


TEMPLATES = (
    where_it_runs,
    state_of_a_job,
    lines_of_the_log,
    time_limit,
    host_of_a_rank,
    steps_done_twice,
    jobs_of_an_array,
    predicted_step,
    lever,
    accumulated_steps,
)
