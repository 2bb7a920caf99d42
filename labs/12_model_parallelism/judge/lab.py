"""The exercises of lab 12: schedules of a pipeline, the number of micro-batches, layers split by columns and rows."""

from collections.abc import Sequence

from distlab.labs.lab import Exercise, Lab
from lab_12 import pipeline_plan, pipeline_schedules, split_layer_judges
from lab_12.split_layers import ELEMENT, SPLITS, LayerSizes
from distlab.model_parallel import pipelines


def target(name: str) -> str:
    """What an exercise's answer must reach, by the closed formulas."""
    if name in SPLITS:
        return _bytes(name)
    return {"table": _table, "one_forward_one_backward": _order, "plan": _plan}[name]()


def _table() -> str:
    return (
        f"{pipeline_schedules.STAGES} stages, {pipeline_schedules.MICRO_BATCHES} micro-batches, each pass one slot: "
        f"{pipeline_schedules.fewest_slots()} slots"
    )


def _order() -> str:
    lines = ["stages   micro-batches   seconds   held at most, by stage"]
    for stages, micro_batches in ((4, 8), (4, 32), (4, 2), (1, 3)):
        seconds = pipelines.seconds(
            stages, micro_batches, pipeline_schedules.FORWARD_SECONDS, pipeline_schedules.BACKWARD_SECONDS
        )
        most = (f"{pipelines.activations_held('1f1b', stages, micro_batches, stage):g}" for stage in range(stages))
        lines.append(f"{stages:>6}{micro_batches:>16}{seconds:>10g}   {', '.join(most)}")
    return "\n".join(lines)


def _plan() -> str:
    job = pipeline_plan.EXAMPLE
    call = f"plan(stages={job.stages}, batch={job.batch}, fits={job.fits}, fixed={job.fixed}, each={job.each})"
    return "\n".join([call, *(f"    {name:15}{value:>8.4g}" for name, value in pipeline_plan.planned(*job).items())])


def _bytes(name: str, ranks: Sequence[int] = (1, 2, 4, 8)) -> str:
    """The bytes that a rank sends at most, for layers of one size."""
    _, examples, inputs, hidden, outputs = sizes = (1, 8, 24, 64, 16)
    layers = {
        "by_columns": f"{inputs} inputs, {hidden} units",
        "by_rows": f"{hidden} units, {outputs} outputs",
        "two_layers": f"{inputs} inputs, {hidden} hidden units, {outputs} outputs",
    }[name]
    lines = [f"{examples} examples, {layers}, numbers of {ELEMENT} bytes", "ranks   bytes sent by a rank at most"]
    for size in ranks:
        lines.append(f"{size:>5}{SPLITS[name].bytes_at_most(LayerSizes(size, *sizes[1:])):>31}")
    return "\n".join(lines)


LAB = Lab(
    "12_model_parallelism",
    [
        Exercise("table", 4, pipeline_schedules.judge_table),
        Exercise("one_forward_one_backward", 4, pipeline_schedules.judge_order),
        Exercise("plan", 4, pipeline_plan.judge_plan),
        Exercise("by_columns", 4, split_layer_judges.judge_by_columns),
        Exercise("by_rows", 4, split_layer_judges.judge_by_rows),
        Exercise("two_layers", 6, split_layer_judges.judge_two_layers),
    ],
    solved_in=["distlab.model_parallel"],
    target=target,
)
