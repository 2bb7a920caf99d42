# %% [markdown]
# # Lab 04: a distributed loop that equals the serial one
#
# **Goal.** Say by what factor a loop with the wrong divisor is wrong, give each replica its part of the loss, and write
# a loop with `strategy.run` that trains what one device trains, with uneven batches and a penalty.
#
# **Time.** 45 minutes.
#
# **Before this.** [Chapter 04](../../notebooks/04_custom_training_loop.ipynb), sections 1 to 7.
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it: it says what is
# wrong, with a hint. `make check LAB=04` does the same in a terminal. Exercises 1 to 3 are NumPy: a replica is an entry
# of a list. Exercise 4 trains with TensorFlow. A full solution is next to this file, in
# [solution.ipynb](solution.ipynb).

# %%
from distlab import devices, labs  # first: it selects tf-keras

import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
tf.config.experimental.enable_tensor_float_32_execution(False)  # else some GPUs round more
lab = labs.open("04")

# %% [markdown]
# ## 1. By what factor is it wrong?
#
# One device with all images of an update would use the gradient of the **mean** of their losses. Six loops compute the
# gradient of one update on `replicas` replicas. A replica may compute on several small batches, one after the other,
# before the update: these are **micro-batches**. In each of them every replica has `images` images. All loops but the
# last have one micro-batch per update:
#
# | Loop | Each replica's loss | Then |
# |---|---|---|
# | means, summed | mean over its images | gradients of the replicas are added |
# | means, averaged | mean over its images | gradients are averaged |
# | sums, summed | sum over its images | gradients are added |
# | sums, averaged | sum over its images | gradients are averaged |
# | global means, averaged | sum, divided by the images of all replicas in this micro-batch | gradients are averaged |
# | micro-batches, summed | sum, divided by the images of all replicas in this micro-batch | gradients are added, over the replicas and over `micro_batches` such batches, before one update |
#
# Give for each loop the factor between its gradient and that of the mean over all images of the update: 2 if it is
# twice as large, 0.5 if it is half as large. Target: right for any numbers. One point each. For example

# %%
print(lab.target("factors"))


# %% answer="factors"
def factors(replicas: int, images: int, micro_batches: int) -> dict[str, float]:
    """The factor of each loop."""
    answer = {
        "means, summed": None,
        "means, averaged": None,
        "sums, summed": None,
        "sums, averaged": None,
        "global means, averaged": None,
        "micro-batches, summed": None,
    }
    ### BEGIN SOLUTION
    answer["means, summed"] = replicas
    answer["means, averaged"] = 1
    answer["sums, summed"] = replicas * images
    answer["sums, averaged"] = images
    answer["global means, averaged"] = 1 / replicas
    answer["micro-batches, summed"] = micro_batches
    ### END SOLUTION
    return answer


# %% [markdown]
# ## 2. The loss of each replica
#
# The strategy adds the gradients of all replicas. So each replica's loss must be its *part* of the mean over all
# examples of this global batch; the parts of all replicas add up to that mean. A replica's part contains its own
# examples only.
#
# `losses` has one array for each replica: the losses of its examples. In the last batch of an epoch the replicas may
# have different numbers of examples, or none, and that can be any replica. Give a list with one number for each replica.
#
# Target: exact to a relative error of 1e-9. A third of the points each for a full batch, an uneven one, and one in which
# a replica has no examples. For example

# %%
print(lab.target("replica_losses"))


# %% answer="replica_losses"
def replica_losses(losses: list[np.ndarray]) -> list[float]:
    """Each replica's part of the mean over all examples."""
    ### BEGIN SOLUTION
    examples = sum(len(own) for own in losses)
    return [np.sum(own) / examples for own in losses]
    ### END SOLUTION


# %% [markdown]
# ## 3. A penalty
#
# A penalty on the weights, such as weight decay, is part of the loss too. It depends on the weights, which are the same
# on every replica, and on no example. Each replica runs the same code, so each adds the same amount, and all of them
# together must add the penalty once.
#
# Give each replica's loss with its part of `penalty`. Target and points as in exercise 2. For example

# %%
print(lab.target("with_penalty"))


# %% answer="with_penalty"
def with_penalty(losses: list[np.ndarray], penalty: float) -> list[float]:
    """Each replica's part of the mean over all examples plus the penalty."""
    ### BEGIN SOLUTION
    examples = sum(len(own) for own in losses)
    return [np.sum(own) / examples + penalty / len(losses) for own in losses]
    ### END SOLUTION


# %% [markdown]
# ## 4. The distributed loop
#
# Here is a serial program. It makes one pass over the images and logs the loss of each step. The hidden layer has a
# penalty, which is in `model.losses`.


# %%
def network():
    """A network whose first layer has a penalty."""
    penalty = tf.keras.regularizers.L2(0.05)
    hidden = tf.keras.layers.Dense(128, activation="relu", kernel_regularizer=penalty)
    return tf.keras.Sequential(
        [tf.keras.layers.Flatten(input_shape=(28, 28)), hidden, tf.keras.layers.Dense(10)],
    )


def serial(images, labels, first_weights, batch_size):
    """The model after one pass on one device, and the loss of each step."""
    model = network()
    model.set_weights(first_weights)
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    losses = []
    for batch_images, batch_labels in tf.data.Dataset.from_tensor_slices(
        (images, labels),
    ).batch(batch_size):
        with tf.GradientTape() as tape:
            logits = model(batch_images, training=True)
            per_image = tf.nn.sparse_softmax_cross_entropy_with_logits(batch_labels, logits)
            loss = tf.reduce_mean(per_image) + tf.add_n(model.losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        losses.append(float(loss))
    return model, losses


# %% [markdown]
# And here is a strategy with two devices: two GPUs if there are at least two, else two logical CPU devices.

# %%
strategy = tf.distribute.MirroredStrategy(devices.at_least(2))

# %% [markdown]
# Write the same program for all replicas of a strategy. `batch_size` is that of the **global** batch. The last batch may
# be smaller: the replicas then get different numbers of images, and some may get none. No image is dropped, and their
# order stays.
#
# Target, a quarter of the points for each, with two replicas and with one:
#
# - **variables**: each has a copy on every device of the strategy, those of the optimizer too;
# - **parts of a batch**: `strategy.run` calls the step, and each replica gets its part of the global batch;
# - **weights**: after the pass they are those of `serial`, to within 0.0001;
# - **losses**: a list with one number per step: Python numbers that equal those of `serial`.
#
# Compare with `serial` yourself before you run the check: `serial(*lab.given.example())` trains on images of noise.


# %% answer="distributed"
def distributed(strategy, images, labels, first_weights, batch_size):
    """The model after one pass on all replicas, and the loss of each step."""
    ### BEGIN SOLUTION
    with strategy.scope():
        model = network()
        optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    model.set_weights(first_weights)

    def replica_step(images, labels):
        context = tf.distribute.get_replica_context()
        count = context.all_reduce("SUM", tf.cast(tf.size(labels), tf.float32))
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            per_image = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_sum(per_image) / count
            loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    @tf.function
    def train_step(images, labels):
        losses = strategy.run(replica_step, args=(images, labels))
        return strategy.reduce("SUM", losses, axis=None)

    batches = tf.data.Dataset.from_tensor_slices((images, labels)).batch(batch_size)
    batches = strategy.experimental_distribute_dataset(batches)
    losses = [float(train_step(*batch)) for batch in batches]
    return model, losses
    ### END SOLUTION


# %% [markdown]
# ## What you have now
#
# - The factor of a wrong divisor. With SGD it acts as a wrong learning rate, which is why such a loop seems to work.
# - One rule for every case: add up over all replicas, count what was added, divide once. Exercise 2 is
#   `tf.nn.compute_average_loss(losses, global_batch_size=…)`, and exercise 3 `tf.nn.scale_regularization_loss`.
# - A distributed loop that trains what one device trains, whatever the last batch.
#
# **Going on.** Let each replica divide by its own images, and look at the losses: which of them would make you
# suspicious? Then read how to save what a loop has trained, in
# [chapter 05](../../notebooks/05_save_and_load.ipynb).
