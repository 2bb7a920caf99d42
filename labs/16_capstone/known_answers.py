"""Known answers to `train` of the capstone; importing this starts TensorFlow, so it is done in a process of its own.

Each is one of two right programs, Horovod's of the solution or `BY_STRATEGY`, with some changes.
"""

import re

from tests.distlab.labs.solutions import edited, solved_cells

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
GIVEN_CELL, HOROVOD = (solved_cells("16")[name] for name in (next(iter(solved_cells("16"))), "train"))
# Of each answer its title, whether it changes `BY_STRATEGY` or is right, and the changes; a line that begins with +
# goes on with the one before.
KNOWN = """\
averages_of_multiples, right: tf.reduce_sum(losses) / tf.cast(count, tf.float32) → tf.reduce_sum(losses) * hvd.size()
+  / tf.cast(count, tf.float32)
| (tape, op=hvd.Sum) → (tape)
| return hvd.allreduce(loss, op=hvd.Sum) → return hvd.allreduce(loss)
gradients_added_by_hand, right:     tape = hvd.DistributedGradientTape(tape, op=hvd.Sum)⏎ →
| gradients = tape.gradient(loss, weights) → gradients = [hvd.allreduce(one, op=hvd.Sum) for one in
+  tape.gradient(loss, weights)]
own_batches_of_a_worker, strategy, right: strategy.experimental_distribute_dataset(batches(options, epoch)) →
+  strategy.distribute_datasets_from_function(lambda context: batches(options, epoch, context))
| def batches(options, epoch): → def batches(options, epoch, context):
| .batch(options.batch) → .batch(options.batch).map(lambda *batch: [part[context.input_pipeline_id :: workers] for
+  part in batch])
|     words, labels = data →     workers = context.num_input_pipelines⏎    words, labels = data
accuracy_by_another_pass, right:     gradients = tape →     tf.reduce_mean(tf.cast(tf.argmax(state.model(words), -1)
+  == tf.cast(labels, tf.int64), tf.float32))⏎    gradients = tape
loss_by_a_metric, strategy, right:         state = begin(options)⏎ →         state = begin(options)⏎        seen =
+  tf.keras.metrics.Mean()⏎
| args=(state, words, labels) → args=(state, words, labels, seen)
| def step(state, words, labels): → def step(state, words, labels, seen):
|     gradients = tape →     seen.update_state(loss_of_each(labels, state.model(words, training=True)))⏎    gradients
+  = tape
|             steps.append( →             loss = float(seen.result())⏎            seen.reset_state()⏎
+             steps.append(
serial:     hvd.init()⏎ →
| hvd.rank() → 0
| hvd.size() → 1
| hvd.DistributedGradientTape(tape, op=hvd.Sum) → tape
| return hvd.allreduce(loss, op=hvd.Sum) → return loss
|     hvd.broadcast_variables( →     list(
| , root_rank=0) → )
no_init:     hvd.init()⏎ →
rank_0_broadcasts:     hvd.broadcast_variables →     if hvd.rank() == 0:⏎        hvd.broadcast_variables
state_alone: return state, steps → return state
without_end: tf.size(labels))) → tf.size(labels))).repeat()
no_broadcast:     hvd.broadcast_variables( →     list(
| , root_rank=0) → )
not_shared: slice(hvd.rank(), None, hvd.size()) → slice(None)
own_orders: [options.seed, epoch] → [options.seed, epoch, hvd.rank()]
last_batch_dropped: .batch(options.batch) → .batch(options.batch, drop_remainder=True)
batch_of_each_rank: .batch(options.batch) → .batch(options.batch * hvd.size())
rate_times_ranks: SGD(options.rate, → SGD(options.rate * hvd.size(),
no_exchange: hvd.DistributedGradientTape(tape, op=hvd.Sum) → tape
averaged_again: (tape, op=hvd.Sum) → (tape)
own_count: loss = tf.reduce_sum(losses) / tf.cast(count, tf.float32) → loss = tf.reduce_mean(losses)
| (tape, op=hvd.Sum) → (tape)
| return hvd.allreduce(loss, op=hvd.Sum) → return hvd.allreduce(loss)
means_added: loss = tf.reduce_sum(losses) / tf.cast(count, tf.float32) → loss = tf.reduce_mean(losses)
losses_added: tf.reduce_sum(losses) / tf.cast(count, tf.float32) → tf.reduce_sum(losses)
part_of_loss: return hvd.allreduce(loss, op=hvd.Sum) → return loss
all_save: if options.folder and hvd.rank() == 0: → if options.folder:
nobody_saves:             state.save(str(options.folder / "checkpoint")) →             pass
rank_1_saves: if options.folder and hvd.rank() == 0: → if options.folder and hvd.rank() == 1:
model_saved_alone:             state.save( →             tf.train.Checkpoint(model=state.model).save(
all_read: if options.resume and hvd.rank() == 0: → if options.resume:
not_resumed:         state.restore(newest).assert_existing_objects_matched() →         state.epochs_done.assign(1)
model_broadcast_alone: [*model.variables, *optimizer.variables, done] → [*model.variables, done]
broadcast_before_restore:     hvd.broadcast_variables([*model.variables, *optimizer.variables, done], root_rank=0)⏎ →
|     if options.resume and →     hvd.broadcast_variables([*model.variables, *optimizer.variables, done],
+  root_rank=0)⏎    if options.resume and
saved_at_the_end:         if options.folder and hvd.rank() == 0:⏎            state.save( →     if options.folder and
+  hvd.rank() ==
+  0:⏎        state.save(
from_epoch_0: range(int(state.epochs_done),  → range(
no_seconds: , "seconds": seconds} → }
no_time: "seconds": seconds → "seconds": 0.0
clock_started_once:             start = time.perf_counter()⏎ →
|     for epoch in →     start = time.perf_counter()⏎    for epoch in
saves_each_step:         state.epochs_done.assign_add(1)⏎ →             if hvd.rank() == 0:⏎
+                 state.save(str(options.folder / "checkpoint"))⏎        state.epochs_done.assign_add(1)⏎
strategy_of_one_process, strategy: tf.distribute.MultiWorkerMirroredStrategy() → tf.distribute.MirroredStrategy()
plain_sgd: , momentum=0.9 →
rank_1_returns_nothing:     return state, steps →     return (state, steps) if hvd.rank() == 0 else None
strategy_not_sharded, strategy: .batch(options.batch)⏎ → .batch(options.batch).with_options(off())⏎
| def begin(options): → ⏎def off():⏎    options = tf.data.Options()⏎
+     options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF⏎    return
+  options⏎⏎⏎def begin(options):
strategy_shards_before, strategy: (batches(options, epoch)) → (batches(options,
+  epoch).shard(strategy.num_replicas_in_sync, task(strategy)))
| def begin(options): → def task(strategy):⏎    return strategy.cluster_resolver.task_id⏎⏎⏎def begin(options):
strategy_late, strategy:     strategy = tf →     tf.constant(1.0)⏎    strategy = tf
strategy_without_scope, strategy:     with strategy.scope():⏎        state →     state
strategy_added_twice, strategy: gradients = tape.gradient(loss, state.model.trainable_variables) → gradients =
+  tape.gradient(loss,
+  state.model.trainable_variables)⏎    gradients = tf.distribute.get_replica_context().all_reduce("SUM", gradients)
five_faults:     hvd.broadcast_variables( →     list(
| , root_rank=0) → )
| [options.seed, epoch] → [options.seed, epoch, hvd.rank()]
| SGD(options.rate, → SGD(options.rate * hvd.size(),
| tf.reduce_sum(losses) / tf.cast(count, tf.float32) → tf.reduce_mean(losses)
| (tape, op=hvd.Sum) → (tape)
| return hvd.allreduce(loss, op=hvd.Sum) → return hvd.allreduce(loss)
| if options.folder and hvd.rank() == 0: → if options.folder:
by_a_full_batch: tf.size(labels) → options.batch
seconds_of_all: "seconds": seconds → "seconds": float(hvd.allreduce(tf.constant(seconds)))
mean_of_no_texts: return hvd.allreduce(loss, op=hvd.Sum) → return hvd.allreduce(tf.reduce_mean(losses) *
+  tf.cast(len(losses) / count,
+  tf.float32), op=hvd.Sum)
"""


def program(text):
    """The names of a notebook whose cell has this text."""
    namespace = {"__name__": "notebook"}
    exec(compile(GIVEN_CELL, "<given>", "exec"), namespace)
    exec(compile(text, "<train>", "exec"), namespace)
    return namespace


def known():
    """The programs of KNOWN by title, right ones and wrong ones."""
    by_title = {True: {}, False: {}}
    for answer in re.split(r"\n(?!\| )", KNOWN.strip().replace("\n+ ", "")):
        heading, _, changes = answer.partition(": ")
        title, *kinds = heading.split(", ")
        text = edited(BY_STRATEGY if "strategy" in kinds else HOROVOD, changes.replace("\n| ", " <> "))
        by_title["right" in kinds][title] = program(text)
    return by_title[True], by_title[False]


RIGHT_ONES, WRONG_ONES = known()
GIVEN, WRONG = {}, {"train": WRONG_ONES}
RIGHT = {"train": [program(HOROVOD), program(BY_STRATEGY), *RIGHT_ONES.values()]}
