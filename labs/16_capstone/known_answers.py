"""Known answers to `train` of the capstone; importing this starts TensorFlow, so it is done in a process of its own.

Each is one of two right programs, Horovod's of the solution or `BY_STRATEGY`, with some changes.
"""

import distlab  # before TensorFlow: it selects tf-keras

# isort: split

from tests.distlab.labs.known_wrong import LabAnswers, WrongAnswer
from tests.distlab.labs.solutions import solved_cells

assert distlab
BY_STRATEGY = """\
def train(options):
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        state = begin(options)

    @tf.function(reduce_retracing=True)
    def whole_step(words, labels):
        loss, count = strategy.run(step, args=(state, words, labels))
        return strategy.reduce("SUM", loss, axis=None), strategy.reduce("MEAN", count, axis=None)

    steps = []
    for epoch in range(int(state.epochs_done.numpy()), options.epochs):
        for words, labels in strategy.experimental_distribute_dataset(batches(options, epoch)):
            start = time.perf_counter()
            loss, count = whole_step(words, labels)
            steps.append({"texts": int(count), "loss": float(loss), "seconds": time.perf_counter() - start})
        state.epochs_done.assign_add(1)
        with tempfile.TemporaryDirectory() as scratch:
            is_first = strategy.cluster_resolver.task_id == 0
            state.save(str((options.folder if is_first else Path(scratch)) / "checkpoint"))
    return state, steps


def begin(options):
    model = models.text_classifier(options.units)
    optimizer = tf.keras.optimizers.SGD(options.rate, momentum=0.9)
    optimizer.build(model.trainable_variables)
    state = tf.train.Checkpoint(model=model, optimizer=optimizer, epochs_done=tf.Variable(0, dtype=tf.int64))
    if options.resume:
        state.restore(tf.train.latest_checkpoint(options.folder)).assert_existing_objects_matched()
    return state


def batches(options, epoch):
    words, labels = data.topics.texts(options.texts, options.seed)
    order = np.random.default_rng([options.seed, epoch]).permutation(options.texts)
    return tf.data.Dataset.from_tensor_slices((words[order], labels[order])).batch(options.batch)


def step(state, words, labels):
    count = tf.distribute.get_replica_context().all_reduce("SUM", tf.cast(tf.size(labels), tf.float32))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(loss_of_each(labels, state.model(words, training=True))) / count
    gradients = tape.gradient(loss, state.model.trainable_variables)
    state.optimizer.apply_gradients(zip(gradients, state.model.trainable_variables, strict=True))
    return loss, count
"""
ANSWERS = LabAnswers()
CELLS = {name: text for name, text in solved_cells("16").items() if not name.startswith("cell")}
GIVEN_CELLS = [text for name, text in solved_cells("16").items() if name.startswith("cell")]
HOROVOD, STRATEGY = CELLS["train"], BY_STRATEGY


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
    ANSWERS.wrong_answers["train"].append(WrongAnswer(title, changed(text, *changes), (), tuple(hints), share))


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
    ["How do the ranks meet?"],
    ("    hvd.init()\n", ""),
    ("hvd.rank()", "0"),
    ("hvd.size()", "1"),
    ("hvd.DistributedGradientTape(tape, op=hvd.Sum)", "tape"),
    ("return hvd.allreduce(loss, op=hvd.Sum)", "return loss"),
    ("    hvd.broadcast_variables(", "    list("),
    (", root_rank=0)", ")"),
    share=0,
)
wrong("no_init", HOROVOD, ["What must come first?"], ("    hvd.init()\n", ""), share=0)
wrong(
    "rank_0_broadcasts",
    HOROVOD,
    ["Which call does that rank leave out, or"],
    ("    hvd.broadcast_variables", "    if hvd.rank() == 0:\n        hvd.broadcast_variables"),
    share=0,
)
wrong("a_typing_error", HOROVOD, ["fails with"], ("options.units", "options.unit"), share=0)
wrong(
    "state_alone",
    HOROVOD,
    ["`train` gives the checkpoint object `state`"],
    ("return state, steps", "return state"),
    share=0,
)
wrong(
    "without_end",
    HOROVOD,
    ["Where does the loop over an epoch end?"],
    ("tf.size(labels)))", "tf.size(labels))).repeat()"),
    share=0,
)
wrong(
    "no_broadcast",
    HOROVOD,
    ["Who tells them those of rank 0, and when?"],
    ("    hvd.broadcast_variables(", "    list("),
    (", root_rank=0)", ")"),
)
wrong(
    "not_shared",
    HOROVOD,
    ["Which of its texts are for this rank?"],
    ("slice(hvd.rank(), None, hvd.size())", "slice(None)"),
)
wrong(
    "own_orders",
    HOROVOD,
    ["Do all ranks divide one and the same order?"],
    ("[options.seed, epoch]", "[options.seed, epoch, hvd.rank()]"),
)
wrong(
    "another_order",
    HOROVOD,
    ["Is the order the same, and then divided?"],
    ("[options.seed, epoch]", "[options.seed, epoch, 1]"),
)
wrong(
    "last_batch_dropped",
    HOROVOD,
    ["What does the serial program do with it?"],
    (".batch(options.batch)", ".batch(options.batch, drop_remainder=True)"),
)
wrong(
    "last_texts_lost",
    HOROVOD,
    ["Who takes the last ones of a batch?"],
    ("own = slice(hvd.rank(), None, hvd.size())", "own = slice(hvd.rank(), None, 2 * hvd.size())"),
)
wrong(
    "batch_of_each_rank",
    HOROVOD,
    ["What is one's share?"],
    (".batch(options.batch)", ".batch(options.batch * hvd.size())"),
)
wrong("rate_times_ranks", HOROVOD, ["Why go further?"], ("SGD(options.rate,", "SGD(options.rate * hvd.size(),"))
wrong(
    "rate_by_ranks", HOROVOD, ["Does the global batch change?"], ("SGD(options.rate,", "SGD(options.rate / hvd.size(),")
)
wrong(
    "no_exchange",
    HOROVOD,
    ["Who adds the parts of the others?"],
    ("hvd.DistributedGradientTape(tape, op=hvd.Sum)", "tape"),
)
wrong("averaged_again", HOROVOD, ["Which call divides already?"], ("(tape, op=hvd.Sum)", "(tape)"))
wrong(
    "own_count",
    HOROVOD,
    ["Does each text count alike in your mean?"],
    ("loss = tf.reduce_sum(losses) / tf.cast(count, tf.float32)", "loss = tf.reduce_mean(losses)"),
    ("(tape, op=hvd.Sum)", "(tape)"),
    ("return hvd.allreduce(loss, op=hvd.Sum)", "return hvd.allreduce(loss)"),
)
wrong(
    "means_added",
    HOROVOD,
    ["By what is each sum to be divided?"],
    ("loss = tf.reduce_sum(losses) / tf.cast(count, tf.float32)", "loss = tf.reduce_mean(losses)"),
)
wrong(
    "losses_added",
    HOROVOD,
    ["By how many texts is the sum to be divided?", "and the mean over its texts"],
    ("tf.reduce_sum(losses) / tf.cast(count, tf.float32)", "tf.reduce_sum(losses)"),
    share=4 / 12,
)
wrong("part_of_loss", HOROVOD, ["Who adds the parts?"], ("return hvd.allreduce(loss, op=hvd.Sum)", "return loss"))
wrong("own_texts", HOROVOD, ["How many did all ranks work on?"], ('"texts": int(count)', '"texts": len(labels)'))
wrong(
    "all_save",
    HOROVOD,
    ["On a shared disk, whose file would remain?"],
    ("if options.folder and hvd.rank() == 0:", "if options.folder:"),
)
wrong(
    "nobody_saves",
    HOROVOD,
    ["When does the serial program write one?"],
    ('            state.save(str(options.folder / "checkpoint"))', "            pass"),
)
wrong(
    "rank_1_saves",
    HOROVOD,
    ["Who reads it next time?"],
    ("if options.folder and hvd.rank() == 0:", "if options.folder and hvd.rank() == 1:"),
)
wrong(
    "model_saved_alone",
    HOROVOD,
    ["What does the next run need?"],
    ("            state.save(", "            tf.train.Checkpoint(model=state.model).save("),
)
wrong(
    "all_read",
    HOROVOD,
    ["Who reads, and how do the others get it?"],
    ("if options.resume and hvd.rank() == 0:", "if options.resume:"),
    share=0.5,
)
wrong(
    "not_resumed",
    HOROVOD,
    ["When is it read, and what comes after that?"],
    (
        "        state.restore(tf.train.latest_checkpoint(options.folder)).assert_existing_objects_matched()",
        "        state.epochs_done.assign(1)",
    ),
    share=LATER,
)
wrong(
    "model_broadcast_alone",
    HOROVOD,
    ["Is the model the whole state?"],
    ("[*model.variables, *optimizer.variables, state.epochs_done]", "[*model.variables, state.epochs_done]"),
    share=LATER,
)
BROADCAST = "    hvd.broadcast_variables([*model.variables, *optimizer.variables, state.epochs_done], root_rank=0)\n"
RESUMED_APART = 0.5  # right on two ranks, and on three they do not come to an end
wrong(
    "broadcast_before_restore",
    HOROVOD,
    ["The ranks begin with different `epochs_done`"],
    (BROADCAST, ""),
    ("    if options.resume and", f"{BROADCAST}    if options.resume and"),
    share=RESUMED_APART,
)
wrong(
    "weights_broadcast_alone",
    HOROVOD,
    ["The ranks begin with different `epochs_done`"],
    ("[*model.variables, *optimizer.variables, state.epochs_done]", "model.variables"),
    share=RESUMED_APART,
)
wrong(
    "saved_at_the_end",
    HOROVOD,
    ["What is lost if the job stops now?"],
    (
        "        if options.folder and hvd.rank() == 0:\n            state.save(",
        "    if options.folder and hvd.rank() == 0:\n        state.save(",
    ),
    share=LATER,
)
wrong(
    "from_epoch_0", HOROVOD, ["Where does the loop begin?"], ("range(int(state.epochs_done), ", "range("), share=LATER
)
wrong(
    "no_seconds", HOROVOD, ["What does the serial program append?"], (', "seconds": time.perf_counter() - start}', "}")
)
wrong(
    "no_time",
    HOROVOD,
    ["Between which two moments does the serial"],
    ('"seconds": time.perf_counter() - start', '"seconds": 0.0'),
)
wrong(
    "clock_started_once",
    HOROVOD,
    ["When does the clock start?"],
    ("            start = time.perf_counter()\n", ""),
    ("    for epoch in", "    start = time.perf_counter()\n    for epoch in"),
)
wrong(
    "saves_each_step",
    HOROVOD,
    ["When does the serial program save?"],
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
    ["Which one is for several workers?"],
    ("tf.distribute.MultiWorkerMirroredStrategy()", "tf.distribute.MirroredStrategy()"),
    share=0,
)
wrong("plain_sgd", HOROVOD, ["Which one does that use?"], (", momentum=0.9", ""))
wrong(
    "rank_1_returns_nothing",
    HOROVOD,
    ["Which ranks must return the state and the"],
    ("    return state, steps", "    return (state, steps) if hvd.rank() == 0 else None"),
    share=0,
)
wrong(
    "strategy_not_sharded",
    STRATEGY,
    ["every rank goes through all texts, in"],
    (".batch(options.batch)\n", ".batch(options.batch).with_options(off())\n"),
    ("def begin(options):", f"{OFF}\n\ndef begin(options):"),
)
wrong(
    "strategy_shards_before",
    STRATEGY,
    ["Does a step take a batch that is divided"],
    ("(batches(options, epoch))", "(batches(options, epoch).shard(strategy.num_replicas_in_sync, task(strategy)))"),
    (
        "def begin(options):",
        "def task(strategy):\n    return strategy.cluster_resolver.task_id\n\n\ndef begin(options):",
    ),
)
wrong(
    "strategy_int",
    STRATEGY,
    ["Which method of the variable gives its"],
    ("state.epochs_done.numpy()", "state.epochs_done"),
    share=0,
)
wrong(
    "strategy_late",
    STRATEGY,
    ["What comes first?"],
    ("    strategy = ", "    tf.constant(1.0)\n    strategy = "),
    share=0,
)
wrong(
    "strategy_without_scope",
    STRATEGY,
    ["Which `with` must be around it?"],
    ("    with strategy.scope():\n        state", "    state"),
    share=0,
)
wrong(
    "strategy_added_twice",
    STRATEGY,
    ["Which call adds already?"],
    (
        "gradients = tape.gradient(loss, state.model.trainable_variables)",
        "gradients = tape.gradient(loss, state.model.trainable_variables)\n"
        '    gradients = tf.distribute.get_replica_context().all_reduce("SUM", gradients)',
    ),
)
wrong(
    "strategy_all_save",
    STRATEGY,
    ["On a shared disk, whose file would remain?"],
    ("options.folder if is_first else Path(scratch)", "options.folder"),
)
wrong(
    "strategy_mean",
    STRATEGY,
    ["By what is each sum to be divided?"],
    (
        "tf.reduce_sum(loss_of_each(labels, state.model(words, training=True))) / count",
        "tf.reduce_mean(loss_of_each(labels, state.model(words, training=True)))",
    ),
)
wrong(
    "five_faults",
    HOROVOD,
    [
        "Who tells them those of rank 0, and when?",
        "Do all ranks divide one and the same order?",
        "Why go further?",
        "Does each text count alike in your mean?",
        "On a shared disk, whose file would remain?",
    ],
    ("    hvd.broadcast_variables(", "    list("),
    (", root_rank=0)", ")"),
    ("[options.seed, epoch]", "[options.seed, epoch, hvd.rank()]"),
    ("SGD(options.rate,", "SGD(options.rate * hvd.size(),"),
    ("tf.reduce_sum(losses) / tf.cast(count, tf.float32)", "tf.reduce_mean(losses)"),
    ("(tape, op=hvd.Sum)", "(tape)"),
    ("return hvd.allreduce(loss, op=hvd.Sum)", "return hvd.allreduce(loss)"),
    ("if options.folder and hvd.rank() == 0:", "if options.folder:"),
    share=1 / 12,
)
wrong(
    "by_a_full_batch",
    HOROVOD,
    ["How many texts has it?", "Count those of all ranks"],
    ("tf.size(labels)", "options.batch"),
    share=4 / 12,
)
wrong(
    "seconds_of_all",
    HOROVOD,
    ["`seconds` are the same on all ranks."],
    ("time.perf_counter() - start}", "float(hvd.allreduce(tf.constant(time.perf_counter() - start)))}"),
)
wrong(
    "mean_of_no_texts",
    HOROVOD,
    ["that is the mean of no texts."],
    (
        "return hvd.allreduce(loss, op=hvd.Sum)",
        "return hvd.allreduce(tf.reduce_mean(losses) * tf.cast(len(losses) / count, tf.float32), op=hvd.Sum)",
    ),
    share=LATER,
)
wrong(
    "strategy_divided_twice",
    STRATEGY,
    ["No call divides here: by how many texts do you?"],
    ("training=True))) / count", "training=True))) / count / strategy_size()"),
    (
        "def step(",
        "def strategy_size():\n    return tf.distribute.get_replica_context().num_replicas_in_sync\n\n\ndef step(",
    ),
    share=4 / 12,
)
