"""The exercises of lab 10: batch and learning rate for some ranks, the warm-up, the gradient noise scale."""

from distlab.labs.lab import Exercise, Lab
from lab_10 import noise_scale, plan, warm_up


def target(name: str) -> str:
    """One call of an exercise's function and what it must give, by the course's own functions."""
    return {"plan": _plan, "warm_up": _warm_up, "noise_scale": _noise_scale}[name]()


def _plan() -> str:
    call = "plan({}, hosts={}, ranks_per_host={}, known_batch={}, known_rate={}, fits={}, worthwhile={})"
    numbers = plan.plan(*plan.EXAMPLE)
    return "\n".join([call.format(*plan.EXAMPLE), *(f"    {name:18}{numbers[name]:>8g}" for name in numbers)])


def _warm_up() -> str:
    schedule = warm_up.EXAMPLE
    steps = range(schedule.steps + 2)
    lines = ["{1} epochs of {0} steps, from {2} to {3}".format(*schedule)]
    return "\n".join(lines + [f"    step {step}: {warm_up.warm_up(step, *schedule):.5f}" for step in steps])


def _noise_scale() -> str:
    gradients, batch = noise_scale.EXAMPLE
    numbers = noise_scale.noise_scale(gradients, batch)
    call = f"noise_scale(np.array({gradients.tolist()}), {batch})"
    return "\n".join([call, *(f"    {name:18}{value:>6g}" for name, value in numbers.items())])


LAB = Lab(
    "10_large_batch_and_warmup",
    [
        Exercise("plan", 4, plan.judge_plan),
        Exercise("warm_up", 4, warm_up.judge_warm_up),
        Exercise("noise_scale", 6, noise_scale.judge_noise_scale),
    ],
    solved_in=["distlab.large_batch"],
    target=target,
)
