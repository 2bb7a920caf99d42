"""Answers to `train` of the capstone; importing this starts TensorFlow, so it is done in a process of its own.

Most are one of two right programs, Horovod's of the solution or that of `answers_16_good`, with one change.
"""

import distlab  # before TensorFlow: it selects tf-keras

# isort: split
import inspect

from lab_16.hints import Lab16TrainHint as Hints
from lab_16_tests import answers_16_faulty, answers_16_good

from distlab.labs import Hint
from tests.distlab.labs.known_wrong import LabAnswers, WrongAnswer
from tests.distlab.labs.solutions import solved_cells

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
FORWARD = "    tf.reduce_mean(tf.cast(tf.argmax(state.model(words), -1) == tf.cast(labels, tf.int64), tf.float32))\n"
right("accuracy_by_another_pass", HOROVOD, ("    gradients = tape", f"{FORWARD}    gradients = tape"))
right("accuracy_of_a_worker", STRATEGY, ("    gradients = tape", f"{FORWARD}    gradients = tape"))
right(
    "loss_by_a_metric",
    STRATEGY,
    ("        state = begin(options)\n", "        state = begin(options)\n        seen = tf.keras.metrics.Mean()\n"),
    ("args=(state, words, labels)", "args=(state, words, labels, seen)"),
    ("def step(state, words, labels):", "def step(state, words, labels, seen):"),
    (
        "    gradients = tape",
        "    seen.update_state(loss_of_each(labels, state.model(words, training=True)))\n    gradients = tape",
    ),
    (
        "            steps.append(",
        "            loss = float(seen.result())\n            seen.reset_state()\n            steps.append(",
    ),
)
OFF = """
def off():
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return options
"""

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
BROADCAST = "    hvd.broadcast_variables([*model.variables, *optimizer.variables, state.epochs_done], root_rank=0)\n"
RESUMED_APART = 0.5  # right on two ranks, and on three they do not come to an end
wrong(
    "broadcast_before_restore",
    HOROVOD,
    [Hints.EPOCHS_DIFFER],
    (BROADCAST, ""),
    ("    if options.resume and", f"{BROADCAST}    if options.resume and"),
    share=RESUMED_APART,
)
wrong(
    "weights_broadcast_alone",
    HOROVOD,
    [Hints.EPOCHS_DIFFER],
    ("[*model.variables, *optimizer.variables, state.epochs_done]", "model.variables"),
    share=RESUMED_APART,
)
wrong(
    "saved_at_the_end",
    HOROVOD,
    [Hints.SAVED_LATE],
    (
        "        if options.folder and hvd.rank() == 0:\n            state.save(",
        "    if options.folder and hvd.rank() == 0:\n        state.save(",
    ),
    share=LATER,
)
wrong("from_epoch_0", HOROVOD, [Hints.FROM_THE_START], ("range(int(state.epochs_done), ", "range("), share=LATER)
wrong("no_seconds", HOROVOD, [Hints.NO_SECONDS], (', "seconds": time.perf_counter() - start}', "}"))
wrong(
    "no_time",
    HOROVOD,
    [Hints.SECONDS_TOO_FEW],
    ('"seconds": time.perf_counter() - start', '"seconds": 0.0'),
)
wrong(
    "clock_started_once",
    HOROVOD,
    [Hints.SECONDS_TOO_MANY],
    ("            start = time.perf_counter()\n", ""),
    ("    for epoch in", "    start = time.perf_counter()\n    for epoch in"),
)
wrong(
    "saves_each_step",
    HOROVOD,
    [Hints.SAVED_IN_BETWEEN],
    (
        "        state.epochs_done.assign_add(1)\n",
        "            if hvd.rank() == 0:\n"
        '                state.save(str(options.folder / "checkpoint"))\n'
        "        state.epochs_done.assign_add(1)\n",
    ),
)
wrong(
    "strategy_of_one_process",
    STRATEGY,
    [Hints.ANOTHER_STRATEGY],
    ("tf.distribute.MultiWorkerMirroredStrategy()", "tf.distribute.MirroredStrategy()"),
    share=0,
)
wrong("plain_sgd", HOROVOD, [Hints.ANOTHER_OPTIMIZER], (", momentum=0.9", ""))
wrong(
    "rank_1_returns_nothing",
    HOROVOD,
    [Hints.NOTHING_ON_RANK],
    ("    return state, steps", "    return (state, steps) if hvd.rank() == 0 else None"),
    share=0,
)
wrong(
    "strategy_not_sharded",
    STRATEGY,
    [Hints.ALL_TEXTS_EACH],
    (".batch(options.batch)\n", ".batch(options.batch).with_options(off())\n"),
    ("def begin(options):", f"{OFF}\n\ndef begin(options):"),
)
wrong(
    "strategy_shards_before",
    STRATEGY,
    [Hints.STEPS_MISSING],
    ("(batches(options, epoch))", "(batches(options, epoch).shard(strategy.num_replicas_in_sync, task(strategy)))"),
    (
        "def begin(options):",
        "def task(strategy):\n    return strategy.cluster_resolver.task_id\n\n\ndef begin(options):",
    ),
)
wrong("strategy_int", STRATEGY, [Hints.NO_INT], ("state.epochs_done.numpy()", "state.epochs_done"), share=0)
wrong(
    "strategy_late",
    STRATEGY,
    [Hints.STRATEGY_LATE],
    ("    strategy = ", "    tf.constant(1.0)\n    strategy = "),
    share=0,
)
wrong(
    "strategy_without_scope",
    STRATEGY,
    [Hints.NO_SCOPE],
    ("    with strategy.scope():\n        state", "    state"),
    share=0,
)
wrong(
    "strategy_added_twice",
    STRATEGY,
    [Hints.ADDED_TWICE],
    (
        "gradients = tape.gradient(loss, state.model.trainable_variables)",
        "gradients = tape.gradient(loss, state.model.trainable_variables)\n"
        '    gradients = tf.distribute.get_replica_context().all_reduce("SUM", gradients)',
    ),
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
