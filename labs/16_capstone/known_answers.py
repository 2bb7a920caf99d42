"""Known answers to `train` of the capstone; importing this starts TensorFlow, so it is done in a process of its own.

Each is one of two right programs, Horovod's of the solution or `BY_STRATEGY`, with some changes.
"""

import re

import distlab  # before TensorFlow: it selects tf-keras

# isort: split

from tests.distlab.labs.known_wrong import LabAnswers
from tests.distlab.labs.solutions import edited, solved_cells

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
GIVEN_CELL, HOROVOD = (solved_cells("16")[name] for name in (next(iter(solved_cells("16"))), "train"))
# Of each answer: its title, the program that it changes, the twelfths of the points, words of the hints, the changes;
# a line that begins with + goes on with the one before.
KNOWN = """\
averages_of_multiples, Horovod, 12:
| tf.reduce_sum(losses) / tf.cast(count, tf.float32) → tf.reduce_sum(losses) * hvd.size() / tf.cast(count, tf.float32)
| (tape, op=hvd.Sum) → (tape)
| return hvd.allreduce(loss, op=hvd.Sum) → return hvd.allreduce(loss)
gradients_added_by_hand, Horovod, 12:
|     tape = hvd.DistributedGradientTape(tape, op=hvd.Sum)⏎ →
| gradients = tape.gradient(loss, state.model.trainable_variables) → gradients = [hvd.allreduce(one, op=hvd.Sum) for
+  one in tape.gradient(loss, state.model.trainable_variables)]
own_batches_of_a_worker, strategy, 12:
| strategy.experimental_distribute_dataset(batches(options, epoch)) →
+  strategy.distribute_datasets_from_function(lambda context: batches(options, epoch, context))
| def batches(options, epoch): → def batches(options, epoch, context):
| .batch(options.batch) → .batch(options.batch).map(lambda *batch: [part[context.input_pipeline_id :: workers] for
+  part in batch])
|     words, labels = data →     workers = context.num_input_pipelines⏎    words, labels = data
accuracy_by_another_pass, Horovod, 12:
|     gradients = tape →     tf.reduce_mean(tf.cast(tf.argmax(state.model(words), -1) == tf.cast(labels, tf.int64),
+  tf.float32))⏎    gradients = tape
loss_by_a_metric, strategy, 12:
|         state = begin(options)⏎ →         state = begin(options)⏎        seen = tf.keras.metrics.Mean()⏎
| args=(state, words, labels) → args=(state, words, labels, seen)
| def step(state, words, labels): → def step(state, words, labels, seen):
|     gradients = tape →     seen.update_state(loss_of_each(labels, state.model(words, training=True)))⏎    gradients
+  = tape
|             steps.append( →             loss = float(seen.result())⏎            seen.reset_state()⏎
+             steps.append(
serial, Horovod, 0: How do the ranks meet?
|     hvd.init()⏎ →
| hvd.rank() → 0
| hvd.size() → 1
| hvd.DistributedGradientTape(tape, op=hvd.Sum) → tape
| return hvd.allreduce(loss, op=hvd.Sum) → return loss
|     hvd.broadcast_variables( →     list(
| , root_rank=0) → )
no_init, Horovod, 0: What must come first?
|     hvd.init()⏎ →
rank_0_broadcasts, Horovod, 0: Which call does that rank leave out, or
|     hvd.broadcast_variables →     if hvd.rank() == 0:⏎        hvd.broadcast_variables
state_alone, Horovod, 0: `train` gives the checkpoint object `state`
| return state, steps → return state
without_end, Horovod, 0: Where does the loop over an epoch end?
| tf.size(labels))) → tf.size(labels))).repeat()
no_broadcast, Horovod, 5: Who tells them those of rank 0, and when?
|     hvd.broadcast_variables( →     list(
| , root_rank=0) → )
not_shared, Horovod, 5: Which of its texts are for this rank?
| slice(hvd.rank(), None, hvd.size()) → slice(None)
own_orders, Horovod, 5: Do all ranks divide one and the same order?
| [options.seed, epoch] → [options.seed, epoch, hvd.rank()]
last_batch_dropped, Horovod, 5: What does the serial program do with it?
| .batch(options.batch) → .batch(options.batch, drop_remainder=True)
batch_of_each_rank, Horovod, 5: What is one's share?
| .batch(options.batch) → .batch(options.batch * hvd.size())
rate_times_ranks, Horovod, 5: Why go further?
| SGD(options.rate, → SGD(options.rate * hvd.size(),
no_exchange, Horovod, 5: Who adds the parts of the others?
| hvd.DistributedGradientTape(tape, op=hvd.Sum) → tape
averaged_again, Horovod, 5: Which call divides already?
| (tape, op=hvd.Sum) → (tape)
own_count, Horovod, 5: Does each text count alike in your mean?
| loss = tf.reduce_sum(losses) / tf.cast(count, tf.float32) → loss = tf.reduce_mean(losses)
| (tape, op=hvd.Sum) → (tape)
| return hvd.allreduce(loss, op=hvd.Sum) → return hvd.allreduce(loss)
means_added, Horovod, 5: By what is each sum to be divided?
| loss = tf.reduce_sum(losses) / tf.cast(count, tf.float32) → loss = tf.reduce_mean(losses)
losses_added, Horovod, 4: By how many texts is the sum to be divided? | and the mean over its texts
| tf.reduce_sum(losses) / tf.cast(count, tf.float32) → tf.reduce_sum(losses)
part_of_loss, Horovod, 5: Who adds the parts?
| return hvd.allreduce(loss, op=hvd.Sum) → return loss
all_save, Horovod, 5: On a shared disk, whose file would remain?
| if options.folder and hvd.rank() == 0: → if options.folder:
nobody_saves, Horovod, 5: When does the serial program write one?
|             state.save(str(options.folder / "checkpoint")) →             pass
rank_1_saves, Horovod, 5: Who reads it next time?
| if options.folder and hvd.rank() == 0: → if options.folder and hvd.rank() == 1:
model_saved_alone, Horovod, 5: What does the next run need?
|             state.save( →             tf.train.Checkpoint(model=state.model).save(
all_read, Horovod, 6: Who reads, and how do the others get it?
| if options.resume and hvd.rank() == 0: → if options.resume:
not_resumed, Horovod, 11: When is it read, and what comes after that?
|         state.restore(tf.train.latest_checkpoint(options.folder)).assert_existing_objects_matched() →
+          state.epochs_done.assign(1)
model_broadcast_alone, Horovod, 11: Is the model the whole state?
| [*model.variables, *optimizer.variables, state.epochs_done] → [*model.variables, state.epochs_done]
broadcast_before_restore, Horovod, 6: The ranks begin with different `epochs_done`
|     hvd.broadcast_variables([*model.variables, *optimizer.variables, state.epochs_done], root_rank=0)⏎ →
|     if options.resume and →     hvd.broadcast_variables([*model.variables, *optimizer.variables,
+  state.epochs_done], root_rank=0)⏎    if options.resume and
saved_at_the_end, Horovod, 11: What is lost if the job stops now?
|         if options.folder and hvd.rank() == 0:⏎            state.save( →     if options.folder and hvd.rank() ==
+  0:⏎        state.save(
from_epoch_0, Horovod, 11: Where does the loop begin?
| range(int(state.epochs_done),  → range(
no_seconds, Horovod, 5: What does the serial program append?
| , "seconds": time.perf_counter() - start} → }
no_time, Horovod, 5: Between which two moments does the serial
| "seconds": time.perf_counter() - start → "seconds": 0.0
clock_started_once, Horovod, 5: When does the clock start?
|             start = time.perf_counter()⏎ →
|     for epoch in →     start = time.perf_counter()⏎    for epoch in
saves_each_step, Horovod, 5: When does the serial program save?
|         state.epochs_done.assign_add(1)⏎ →             if hvd.rank() == 0:⏎
+                 state.save(str(options.folder / "checkpoint"))⏎        state.epochs_done.assign_add(1)⏎
strategy_of_one_process, strategy, 0: Which one is for several workers?
| tf.distribute.MultiWorkerMirroredStrategy() → tf.distribute.MirroredStrategy()
plain_sgd, Horovod, 5: Which one does that use?
| , momentum=0.9 →
rank_1_returns_nothing, Horovod, 0: Which ranks must return the state and the
|     return state, steps →     return (state, steps) if hvd.rank() == 0 else None
strategy_not_sharded, strategy, 5: every rank goes through all texts, in
| .batch(options.batch)⏎ → .batch(options.batch).with_options(off())⏎
| def begin(options): → ⏎def off():⏎    options = tf.data.Options()⏎
+     options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF⏎    return
+  options⏎⏎⏎def begin(options):
strategy_shards_before, strategy, 5: Does a step take a batch that is divided
| (batches(options, epoch)) → (batches(options, epoch).shard(strategy.num_replicas_in_sync, task(strategy)))
| def begin(options): → def task(strategy):⏎    return strategy.cluster_resolver.task_id⏎⏎⏎def begin(options):
strategy_late, strategy, 0: What comes first?
|     strategy = tf →     tf.constant(1.0)⏎    strategy = tf
strategy_without_scope, strategy, 0: Which `with` must be around it?
|     with strategy.scope():⏎        state →     state
strategy_added_twice, strategy, 5: Which call adds already?
| gradients = tape.gradient(loss, state.model.trainable_variables) → gradients = tape.gradient(loss,
+  state.model.trainable_variables)⏎    gradients = tf.distribute.get_replica_context().all_reduce("SUM", gradients)
five_faults, Horovod, 1: Who tells them those of rank 0, and when? | Do all ranks divide one and the same order? |
+  Why go further? | Does each text count alike in your mean? | On a shared disk, whose file would remain?
|     hvd.broadcast_variables( →     list(
| , root_rank=0) → )
| [options.seed, epoch] → [options.seed, epoch, hvd.rank()]
| SGD(options.rate, → SGD(options.rate * hvd.size(),
| tf.reduce_sum(losses) / tf.cast(count, tf.float32) → tf.reduce_mean(losses)
| (tape, op=hvd.Sum) → (tape)
| return hvd.allreduce(loss, op=hvd.Sum) → return hvd.allreduce(loss)
| if options.folder and hvd.rank() == 0: → if options.folder:
by_a_full_batch, Horovod, 4: How many texts has it? | Count those of all ranks
| tf.size(labels) → options.batch
seconds_of_all, Horovod, 5: `seconds` are the same on all ranks.
| time.perf_counter() - start} → float(hvd.allreduce(tf.constant(time.perf_counter() - start)))}
mean_of_no_texts, Horovod, 11: that is the mean of no texts.
| return hvd.allreduce(loss, op=hvd.Sum) → return hvd.allreduce(tf.reduce_mean(losses) * tf.cast(len(losses) / count,
+  tf.float32), op=hvd.Sum)
"""


def program(text):
    """The names of a notebook whose cell has this text."""
    namespace = {"__name__": "notebook"}
    exec(compile(GIVEN_CELL, "<given>", "exec"), namespace)
    exec(compile(text, "<train>", "exec"), namespace)
    return namespace


def add_known():
    """Fill ANSWERS."""
    for answer in re.split(r"\n(?!\| )", KNOWN.strip().replace("\n+ ", "")):
        heading, *changes = answer.split("\n| ")
        (title, way, points), hints = heading.partition(":")[0].split(", "), heading.partition(": ")[2]
        names = program(edited(BY_STRATEGY if way == "strategy" else HOROVOD, " <> ".join(changes)))
        if points == "12":
            ANSWERS.right("train", names)
        else:
            ANSWERS.wrong("train", title, names, *hints.split(" | "), share=int(points) / 12)


SOLUTIONS, GIVEN = {"train": program(HOROVOD)}, {}
ANSWERS.right("train", program(BY_STRATEGY))
add_known()
