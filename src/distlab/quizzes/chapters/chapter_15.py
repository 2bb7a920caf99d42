"""Clusters: job scripts and their states, who runs where, dead nodes and time limits, slow networks."""

from distlab import costs
from distlab.quizzes.item import Item, figure, other, pick

PLACES = {
    "in the shell that `salloc` has started, without `srun`": "On the login node",
    "in a batch script, without `srun`": "On the first node of the allocation",
    "in a batch script, as `srun python train.py`": "On all nodes of the job",
}


def where_it_runs(item: Item, nodes: int = pick(2, 3, 4), case: str = pick(*PLACES)) -> None:
    item.choose(f"""A job has {nodes} nodes with one task each, on the cluster of the course. `python train.py` is
        called {case}. Where does it run?""")
    item.right(PLACES[case]).why("""`salloc` and `sbatch` reserve nodes; a batch script runs on the
        first; `srun` starts a task on each.""")
    for each, place in PLACES.items():
        if each != case:
            item.wrong(place, f"As {each}".replace("`", "")).why("""Only `srun` starts tasks on the
                nodes.""")
    item.wrong("On the node that has least to do", "The system chooses").why("""The scheduler chooses nodes for jobs,
        not for commands.""")


def state_of_a_job(item: Item, strict: bool = pick(True, False), nodes: int = pick(2, 3, 4)) -> None:
    right, wrong = ("FAILED", "COMPLETED") if strict else ("COMPLETED", "FAILED")
    item.choose("The program of this job script ends with an error. What is the state of the job in the end?")
    set_e = "set -e\n" if strict else ""
    item.block = f'#!/bin/bash\n#SBATCH --nodes={nodes}\n{set_e}srun python train.py\necho "done"'
    item.right(right).why("""The state of a job is the status of the script's last command; with `set -e` the script
        ends at the first that fails.""")
    item.wrong(wrong, "The program for the script").why("Ask which command is the last one that runs.")
    item.wrong("PENDING", "Queued again").why("Nothing in the script asks for the queue.")
    item.wrong("TIMEOUT", "The time limit").why("An error is not a time limit.")


def lines_of_the_log(
    item: Item,
    nodes: int = pick(2, 3, 4),
    per_node: int = pick(2, 4, 8),
    command: str = pick("srun python hello.py", "python hello.py"),
) -> None:
    lines = {"srun python hello.py": nodes * per_node, "python hello.py": 1}
    item.enter(f"""A batch script has `#SBATCH --nodes={nodes} --ntasks-per-node={per_node}` and one command,
        `{command}`, which prints one line. How many lines does the log have?""")
    item.right(lines[command], "lines").why("""`srun` starts all tasks of a step; without it a command runs once, on the
        first node.""")
    item.wrong(other(lines, command), "srun or not").why("Ask who starts the tasks.")
    item.wrong(nodes, "One per node").why("Each process that is started prints a line.")
    item.wrong(nodes + per_node, "Added").why("Each node has that many tasks.")


def time_limit(
    item: Item,
    top: int = pick(10, 20, 30),
    late: int = pick(480, 600),
    line: int = pick(60, 90),
    on_line: bool = pick(True, False),
) -> None:
    right, wrong = (line, top) if on_line else (top, line)
    command = f"sbatch --time={line} job.sbatch" if on_line else "sbatch job.sbatch"
    item.choose(f"The script below is submitted with `{command}`. Times are in minutes. How long may the job run?")
    item.block = (
        f"#!/bin/bash\n#SBATCH --time={top}\nsrun python prepare.py\n#SBATCH --time={late}\nsrun python train.py"
    )
    item.right(right, "minutes").why("""`sbatch` reads options up to the first command only, and an option on the
        command line wins.""")
    item.wrong(late, "The last one wins").why("For the shell that line is a comment, and `sbatch` never sees it.")
    item.wrong(wrong, "Script or command line").why("An option on the command line wins over the script.")
    item.wrong(top + late, "Added up").why("Options replace one another.")


HOSTS = {
    "node[1-3]": ("node1", "node2", "node3"),
    "node[08-10]": ("node08", "node09", "node10"),
    "gpu[4,7,9]": ("gpu4", "gpu7", "gpu9"),
}


def host_of_a_rank(
    item: Item, names: str = pick(*HOSTS), per_node: int = pick(2, 3, 4), rank: int = pick(1, 4, 5)
) -> None:
    hosts = HOSTS[names]
    host = hosts[rank // per_node]
    item.choose("`cluster_spec.from_slurm()` reads these variables. On which node does it expect this task?")
    item.block = f"SLURM_STEP_NODELIST={names}\nSLURM_STEP_TASKS_PER_NODE={per_node}(x3)\nSLURM_PROCID={rank}"
    item.right(host).why(f"""Tasks are numbered node by node, {per_node} on each: rank {rank} is number
        {rank % per_node} of its node.""")
    for another in hosts:
        if another != host:
            item.wrong(another, "Another way to count").why("Count the ranks from 0, node after node.")
    item.wrong("It cannot be known", "No address").why("Slurm's variables name the nodes and the tasks on each.")


def steps_done_twice(
    item: Item,
    every: int = pick(5, 10, 20),
    step: int = pick(37, 58, 93),
    case: str = pick("A node dies", "The time limit is near, Slurm sends SIGUSR1, and the workers save together"),
) -> None:
    right = step % every if case == "A node dies" else 0
    item.choose(f"""A job saves every {every} steps and has `--requeue`. {case} after step {step}. How many steps are
        done twice?""")
    item.right(right, "steps").why("""Without a warning the steps since the last save are lost; with one save after a
        notice nothing is.""")
    item.wrong(0 if right else step % every, "With or without a warning").why("Ask whether there was time to save.")
    item.wrong(step, "From the start").why("The job resumes from the newest whole checkpoint.")
    item.wrong(every, "A whole interval").why("That is the most that can be lost.")


def jobs_of_an_array(
    item: Item, tasks: int = pick(6, 8, 12), at_once: int = pick(2, 3, 4), minutes: int = pick(5, 10)
) -> None:
    item.enter(f"""`#SBATCH --array=1-{tasks}%{at_once}`: each task takes {minutes} minutes, and enough nodes are free.
        After how many minutes is the last one done?""")
    item.right(-(-tasks // at_once) * minutes, "minutes").why(f"""After the percent sign is how many tasks may run at a
        time: {at_once}.""")
    item.wrong(minutes, "All at once").why("The percent sign limits how many run at a time.")
    item.wrong(tasks * minutes, "One after another").why("Count the rounds that are needed.")
    item.wrong(at_once * minutes, "The limit as the number").why("The limit says how many run side by side.")


def predicted_step(
    item: Item,
    nodes: int = pick(2, 3, 4),
    computing: int = pick(5, 20, 50),
    megabytes: int = pick(1, 2, 5),
    rate: int = pick(100, 200),
) -> None:
    cost = costs.all_reduce("ring", nodes, 1e6 * megabytes)
    exchange, bits = (float(cost.seconds(2e-3, per_byte / rate)) for per_byte in (8e-6, 1e-6))
    item.enter(f"""A step computes for {computing} ms on one node. {nodes} nodes ring all-reduce {megabytes} MB over
        a network with {rate} Mbit/s, in which a message takes 2 ms from node to node; nothing overlaps. How many ms
        does a step take by the formula?""")
    item.right((computing / 1e3 + exchange) * 1e3, "ms").why(f"""The all-reduce takes {figure(1e3 * exchange)} ms: 2(p −
        1) latencies, and 2(p − 1)/p times the bytes.""")
    item.wrong(exchange * 1e3, "No computing").why("A step also computes.")
    item.wrong((computing / 1e3 + bits) * 1e3, "Bits for bytes").why("A byte has 8 bits.")
    item.wrong((computing / 1e3 / nodes + exchange) * 1e3, "Computing divided").why("""Every node trains a batch of its
        own.""")


def lever(
    item: Item,
    line: str = pick("100 Mbit/s and a latency of 50 µs", "10 Gbit/s and a latency of 2 ms"),
    kilobytes: int = pick(400, 800),
    gradients: int = pick(40, 60),
) -> None:
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
    item.choose(f"""8 ranks all-reduce {gradients} gradients of together {kilobytes} kB one after the other, over
        a network with {line} from node to node. What saves most time?""")
    item.right(best).why(f"""It saves {figure(share[best])} % of the exchange. Fusion saves nearly all latency, fp16
        half the time of the bytes.""")
    item.wrong(second, "The other part of the time").why(f"It saves {figure(share[second])} %.")
    item.wrong("A smaller batch", "Less work").why("The gradient has as many bytes, whatever the batch.")
    item.wrong("More ranks", "More machines").why("They add messages and save no bytes.")


def accumulated_steps(
    item: Item, computing: int = pick(5, 10, 20), exchange: int = pick(40, 80, 120), batches: int = pick(4, 8)
) -> None:
    item.choose(f"""A batch computes for {computing} ms, and the all-reduce takes {exchange} ms. Gradients of {batches}
        batches are added up before each all-reduce. How many ms does a batch take on average?""")
    item.right((batches * computing + exchange) / batches, "ms").why(f"""The all-reduce is paid once per {batches}
        batches; the price is a global batch {batches} times as large.""")
    item.wrong(computing + exchange, "Every batch").why("That is so without accumulation.")
    item.wrong((computing + exchange) / batches, "All divided").why("Each batch is computed as before.")
    item.wrong(batches * computing + exchange, "The whole step").why("That is the time of all batches together.")
