"""`distlab measure`, which each rank executes, and the part of `distlab predict` that reads what it has written."""

import argparse
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from distlab import cluster_spec, valid
from distlab.costs.measured.measure import MeasureOptions, measure, use_devices
from distlab.costs.measured.measurement import WrongMeasurement, read, write
from distlab.costs.measured.picture import save_picture
from distlab.costs.measured.prediction import most_ranks, predict_measured
from distlab.costs.measured.ranks import RANKS
from distlab.costs.measured.report import IMAGES, as_json, as_table, described
from distlab.runtime.errors import PlainError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

MODELS = ("cnn", "mlp", "wide_cnn")
MOST_RANKS = 1024
_EXAMPLES = """\
run it as you run your training, on at least two hosts; each rank executes it:

  horovodrun --gloo -np 2 -H node1:1,node2:1 distlab measure --output two.json
  mpirun -np 2 -H node1:1,node2:1 distlab measure --output two.json
  srun --mpi=pmix --nodes=2 --ntasks-per-node=1 distlab measure --output two.json
  srun --nodes=2 --ntasks-per-node=1 distlab measure --gloo-from-slurm --output two.json

then: distlab predict --measured two.json --ranks 1..1024
"""


def add_commands(commands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `measure` to the parser of `distlab`."""
    parser = commands.add_parser(
        "measure",
        help="time steps and all-reduces on your cluster: mpirun -np 2 distlab measure --output file.json",
        description="Measure on your own machines what a prediction for more of them needs: a training step without "
        "communication, the size of the gradients, all-reduces of several sizes, and both together.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", type=valid.output, required=True, help="JSON file that rank 0 writes")
    parser.add_argument(
        "--model",
        choices=MODELS,
        default="cnn",
        help="a network of the course; wide_cnn has 128 filters (default: cnn)",
    )
    parser.add_argument("--batch", type=valid.count, default=64, help="images per rank and step (default: 64)")
    parser.add_argument(
        "--with", dest="ranks", choices=RANKS, default="horovod", help="what communicates (default: horovod)"
    )
    parser.add_argument("--gloo-from-slurm", action="store_true", help="srun has started the ranks, without MPI")
    parser.add_argument("--threads", type=valid.count, help="of each rank (default: the ranks divide a host's cores)")
    parser.add_argument("--repeats", type=valid.count, default=20, help="of each measurement (default: 20)")
    parser.add_argument("--warm-up", type=valid.count, default=3, help="repeats before, not counted (default: 3)")
    parser.add_argument(
        "--sizes", nargs="+", type=_size, default=(), help="bytes to all-reduce (default: 1 KiB to all gradients)"
    )
    parser.set_defaults(run=_measure)


def _measure(options: argparse.Namespace) -> int:
    """Measure on all ranks; rank 0 writes and speaks, also for the others' mistakes."""
    if options.gloo_from_slurm:
        if options.ranks != "horovod":
            raise WrongMeasurement("--gloo-from-slurm is for --with horovod.")
        cluster_spec.gloo_from_slurm()
    import tensorflow as tf  # before MPI, whose libraries it would disturb at the end

    tf.get_logger().setLevel("ERROR")
    communicator = RANKS[options.ranks]()
    what = MeasureOptions(options.model, options.batch, options.repeats, options.warm_up, tuple(options.sizes))
    try:
        threads, gpus = use_devices(communicator, options.threads)
        result = measure(communicator, what, threads, gpus)
    except PlainError:
        if communicator.rank == 0:
            raise
        return 2
    except Exception:
        communicator.give_up()
        raise
    if communicator.rank == 0:
        write(result, options.output)
        print(described(result))
    communicator.barrier()
    return 0


def add_prediction_options(parser: argparse.ArgumentParser) -> None:
    """Add to `predict` what predicts from measurements."""
    own = parser.add_argument_group("from measurements of your own cluster (distlab measure)")
    own.add_argument(
        "--measured", nargs="+", metavar="FILE", help="predict from these measurements, of different numbers of ranks"
    )
    own.add_argument("--compare", nargs="+", metavar="FILE", help="measurements to compare the prediction with")
    own.add_argument("--images", type=valid.count, help=f"that the core or GPU hours are for; by default {IMAGES:,}")
    own.add_argument("--own-cores", action="store_true", help="as if measured hosts that share cores had their own")
    own.add_argument("--picture", type=valid.output, help="file that the picture is written to, .svg or .png")


def print_prediction(options: argparse.Namespace, ranks: NDArray[np.int64] | None) -> int:
    """`distlab predict --measured`; without `ranks` powers of two and those that were measured."""
    measurements, compared = ([read(file) for file in files or ()] for files in (options.measured, options.compare))
    if ranks is None:
        limit = min(most_ranks(measurement) or MOST_RANKS for measurement in measurements)
        powers = {2**power for power in range(limit.bit_length()) if 2**power <= limit}
        ranks = np.array(sorted(powers | {each.ranks for each in (*measurements, *compared)}))
    prediction = predict_measured(measurements, ranks, own_cores=options.own_cores or None)
    if options.picture:
        save_picture(prediction, options.picture, compared)
    form = as_json if options.json else as_table
    print(form(prediction, options.images or IMAGES, compared))
    return 0


def _size(text: str) -> int:
    if valid.count(text) % 4:
        raise argparse.ArgumentTypeError(f"{text} is no multiple of 4, the bytes of a number")
    return int(text)
