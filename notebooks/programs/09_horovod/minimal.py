"""The smallest Horovod program. Start it with `horovodrun -np 2 --gloo python minimal.py`."""

import horovod.tensorflow as hvd
import tensorflow as tf
import tf_keras as keras
from sklearn.datasets import load_digits

hvd.init()  # 1. initialise

if gpus := tf.config.list_physical_devices("GPU"):  # 2. pin the device
    own = gpus[hvd.local_rank() % len(gpus)]
    tf.config.set_visible_devices(own, "GPU")
    tf.config.experimental.set_memory_growth(own, True)

digits, classes = load_digits(return_X_y=True)
samples = tf.data.Dataset.from_tensor_slices((digits / 16, classes))
samples = samples.shard(hvd.size(), hvd.rank())  # 7. shard the data
batches = samples.shuffle(1000).repeat().batch(32)

model = keras.Sequential([keras.layers.Dense(128, "relu"), keras.layers.Dense(10)])
model.build((None, 64))
mean_loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.SGD(0.05 * hvd.size())  # 3. scale the learning rate
optimizer.build(model.trainable_variables)
hvd.broadcast_variables(model.variables + optimizer.variables, root_rank=0)  # 5. broadcast

steps = 5 * len(digits) // (32 * hvd.size())  # 8. divide the steps of five epochs
for images, labels in batches.take(steps):
    with tf.GradientTape() as tape:
        loss = mean_loss(labels, model(images))
    tape = hvd.DistributedGradientTape(tape)  # 4. wrap the tape
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

if hvd.rank() == 0:  # 6. checkpoint on rank 0
    model.save_weights("digits.weights.h5")
print(f"rank {hvd.rank()} of {hvd.size()}: {steps} steps, last loss {loss:.2f}")
