"""Answers to `train` of the capstone; importing this starts TensorFlow, so it is done in a process of its own.

Most are one of two right programs, Horovod's of the solution or that of `answers_16_good`, with one change.
"""

import distlab  # before TensorFlow: it selects tf-keras

# isort: split
import inspect

from distlab.labs import Hint
from distlab.labs.lab_16.hints import Lab16TrainHint as Hints
from tests.labs.known_wrong import LabAnswers, WrongAnswer
from tests.labs.lab_16 import answers_16_faulty, answers_16_good
from tests.labs.solutions import solved_cells

assert distlab
ANSWERS = LabAnswers()
CELLS = {name: text for name, text in solved_cells("16").items() if not name.startswith("cell")}
GIVEN_CELLS = [text for name, text in solved_cells("16").items() if name.startswith("cell")]
HOROVOD, STRATEGY = CELLS["train"], inspect.getsource(answers_16_good)


def program(text):
    """The names of a notebook whose cell has this text."""
    namespace = {"__name__": "notebook"}
    for given in GIVEN_CELLS[:1]:
        exec(compile(given, "<given>", "exec"), namespace)
    exec(compile(text, "<train>", "exec"), namespace)
    return namespace


SOLUTIONS = {"train": program(HOROVOD)}
GIVEN = {}
ANSWERS.right_answers["train"].append(("by_the_strategy", program(STRATEGY)))


def changed(text, *changes):
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    return program(text)


def right(title, text, *changes):
    ANSWERS.right_answers["train"].append((title, changed(text, *changes)))


def wrong(title, text, hints, *changes, share=5 / 12):
    ids = tuple(hint for hint in hints if isinstance(hint, Hint))
    ANSWERS.wrong_answers["train"].append(WrongAnswer(title, changed(text, *changes), ids, (), share))


LATER = 11 / 12  # right on two ranks, one part is wrong on three

right(
    "averages_of_multiples",
    HOROVOD,
    (
        "tf.reduce_sum(losses) / tf.cast(count, tf.float32)",
        "tf.reduce_sum(losses) * hvd.size() / tf.cast(count, tf.float32)",
    ),
    ("(tape, op=hvd.Sum)", "(tape)"),
    ("return hvd.allreduce(loss, op=hvd.Sum)", "return hvd.allreduce(loss)"),
)
right(
    "gradients_added_by_hand",
    HOROVOD,
    ("    tape = hvd.DistributedGradientTape(tape, op=hvd.Sum)\n", ""),
    (
        "gradients = tape.gradient(loss, state.model.trainable_variables)",
        "gradients = [hvd.allreduce(one, op=hvd.Sum) for one in tape.gradient(loss, state.model.trainable_variables)]",
    ),
)
right(
    "own_batches_of_a_worker",
    STRATEGY,
    (
        "strategy.experimental_distribute_dataset(batches(options, epoch))",
        "strategy.distribute_datasets_from_function(lambda context: batches(options, epoch, context))",
    ),
    ("def batches(options, epoch):", "def batches(options, epoch, context):"),
    (
        ".batch(options.batch)",
        ".batch(options.batch).map(lambda *batch: [part[context.input_pipeline_id :: workers] for part in batch])",
    ),
    ("    words, labels = data", "    workers = context.num_input_pipelines\n    words, labels = data"),
)

wrong(
    "serial",
    HOROVOD,
    [Hints.NOT_DISTRIBUTED],
    ("    hvd.init()\n", ""),
    ("hvd.rank()", "0"),
    ("hvd.size()", "1"),
    ("hvd.DistributedGradientTape(tape, op=hvd.Sum)", "tape"),
    ("return hvd.allreduce(loss, op=hvd.Sum)", "return loss"),
    ("    hvd.broadcast_variables(", "    list("),
    (", root_rank=0)", ")"),
    share=0,
)
wrong("no_init", HOROVOD, [Hints.NO_INIT], ("    hvd.init()\n", ""), share=0)
wrong(
    "rank_0_broadcasts",
    HOROVOD,
    [Hints.HANGS],
    ("    hvd.broadcast_variables", "    if hvd.rank() == 0:\n        hvd.broadcast_variables"),
    share=0,
)
wrong("a_typing_error", HOROVOD, [Hints.RAISES], ("options.units", "options.unit"), share=0)
wrong("state_alone", HOROVOD, [Hints.WRONG_FORM], ("return state, steps", "return state"), share=0)
wrong("without_end", HOROVOD, [Hints.TOO_MANY_STEPS], ("tf.size(labels)))", "tf.size(labels))).repeat()"), share=0)
wrong(
    "no_broadcast",
    HOROVOD,
    [Hints.NO_BROADCAST],
    ("    hvd.broadcast_variables(", "    list("),
    (", root_rank=0)", ")"),
)
wrong("not_shared", HOROVOD, [Hints.NOT_SHARED], ("slice(hvd.rank(), None, hvd.size())", "slice(None)"))
wrong("own_orders", HOROVOD, [Hints.OVERLAP], ("[options.seed, epoch]", "[options.seed, epoch, hvd.rank()]"))
wrong("another_order", HOROVOD, [Hints.OTHER_BATCH], ("[options.seed, epoch]", "[options.seed, epoch, 1]"))
wrong(
    "last_batch_dropped",
    HOROVOD,
    [Hints.LAST_DROPPED],
    (".batch(options.batch)", ".batch(options.batch, drop_remainder=True)"),
)
wrong(
    "last_texts_lost",
    HOROVOD,
    [Hints.TEXTS_MISSING],
    ("own = slice(hvd.rank(), None, hvd.size())", "own = slice(hvd.rank(), None, 2 * hvd.size())"),
)
wrong(
    "batch_of_each_rank",
    HOROVOD,
    [Hints.BATCH_PER_RANK],
    (".batch(options.batch)", ".batch(options.batch * hvd.size())"),
)
wrong("rate_times_ranks", HOROVOD, [Hints.RATE_SCALED], ("SGD(options.rate,", "SGD(options.rate * hvd.size(),"))
wrong("rate_by_ranks", HOROVOD, [Hints.ANOTHER_RATE], ("SGD(options.rate,", "SGD(options.rate / hvd.size(),"))
wrong("no_exchange", HOROVOD, [Hints.PART_ALONE], ("hvd.DistributedGradientTape(tape, op=hvd.Sum)", "tape"))
wrong("averaged_again", HOROVOD, [Hints.DIVIDED_TWICE], ("(tape, op=hvd.Sum)", "(tape)"))
wrong(
    "own_count",
    HOROVOD,
    [Hints.MEAN_OF_MEANS],
    ("loss = tf.reduce_sum(losses) / tf.cast(count, tf.float32)", "loss = tf.reduce_mean(losses)"),
    ("(tape, op=hvd.Sum)", "(tape)"),
    ("return hvd.allreduce(loss, op=hvd.Sum)", "return hvd.allreduce(loss)"),
)
wrong(
    "means_added",
    HOROVOD,
    [Hints.MEANS_ADDED],
    ("loss = tf.reduce_sum(losses) / tf.cast(count, tf.float32)", "loss = tf.reduce_mean(losses)"),
)
wrong(
    "losses_added",
    HOROVOD,
    [Hints.NOT_DIVIDED, Hints.ANOTHER_LOSS],
    ("tf.reduce_sum(losses) / tf.cast(count, tf.float32)", "tf.reduce_sum(losses)"),
    share=4 / 12,
)
wrong("part_of_loss", HOROVOD, [Hints.PART_OF_LOSS], ("return hvd.allreduce(loss, op=hvd.Sum)", "return loss"))
wrong("own_texts", HOROVOD, [Hints.OWN_TEXTS], ('"texts": int(count)', '"texts": len(labels)'))
wrong("all_save", HOROVOD, [Hints.ALL_SAVE], ("if options.folder and hvd.rank() == 0:", "if options.folder:"))
wrong(
    "nobody_saves",
    HOROVOD,
    [Hints.NOBODY_SAVES],
    ('            state.save(str(options.folder / "checkpoint"))', "            pass"),
)
wrong(
    "rank_1_saves",
    HOROVOD,
    [Hints.WRONG_RANK_SAVES],
    ("if options.folder and hvd.rank() == 0:", "if options.folder and hvd.rank() == 1:"),
)
wrong(
    "model_saved_alone",
    HOROVOD,
    [Hints.NOT_WHOLE],
    ("            state.save(", "            tf.train.Checkpoint(model=state.model).save("),
)
wrong(
    "all_read", HOROVOD, [Hints.ALL_READ], ("if options.resume and hvd.rank() == 0:", "if options.resume:"), share=0.5
)
wrong(
    "not_resumed",
    HOROVOD,
    [Hints.NOT_RESUMED],
    (
        "        state.restore(tf.train.latest_checkpoint(options.folder)).assert_existing_objects_matched()",
        "        state.epochs_done.assign(1)",
    ),
    share=LATER,
)
wrong(
    "model_broadcast_alone",
    HOROVOD,
    [Hints.NO_MOMENTUM],
    ("[*model.variables, *optimizer.variables, state.epochs_done]", "[*model.variables, state.epochs_done]"),
    share=LATER,
)
wrong(
    "strategy_all_save", STRATEGY, [Hints.ALL_SAVE], ("options.folder if is_first else Path(scratch)", "options.folder")
)
wrong(
    "strategy_mean",
    STRATEGY,
    [Hints.MEANS_ADDED],
    (
        "tf.reduce_sum(loss_of_each(labels, state.model(words, training=True))) / count",
        "tf.reduce_mean(loss_of_each(labels, state.model(words, training=True)))",
    ),
)
FAULTS = (Hints.NO_BROADCAST, Hints.OVERLAP, Hints.RATE_SCALED, Hints.MEAN_OF_MEANS, Hints.ALL_SAVE)
ANSWERS.wrong_answers["train"].append(
    WrongAnswer("five_faults", {"train": answers_16_faulty.train}, FAULTS, (), 1 / 12)
)
wrong(
    "by_a_full_batch",
    HOROVOD,
    [Hints.DIVIDED_BY_BATCH, Hints.ANOTHER_COUNT],
    ("tf.size(labels)", "options.batch"),
    share=4 / 12,
)
