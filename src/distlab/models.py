"""The course's models, built with new weights from Keras's seed (`tf.keras.utils.set_random_seed`)."""

import tensorflow as tf

from distlab.data import topics

IMAGE_SHAPE = (28, 28)
CLASSES = 10


def mlp(dropout: float = 0.2) -> tf.keras.Model:
    """The lecture's network: images float32 (n, 28, 28) to logits float32 (n, 10), 101,770 parameters."""
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input(IMAGE_SHAPE),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(128, activation="relu"),
            tf.keras.layers.Dropout(dropout),
            tf.keras.layers.Dense(CLASSES),
        ]
    )


def cnn(filters: int = 32) -> tf.keras.Model:
    """A small convolutional network: images float32 (n, 28, 28) to logits float32 (n, 10); no dropout."""
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input(IMAGE_SHAPE),
            tf.keras.layers.Reshape((*IMAGE_SHAPE, 1)),
            tf.keras.layers.Conv2D(filters, 3, activation="relu"),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(CLASSES),
        ]
    )


def unet(filters: int = 8) -> tf.keras.Model:
    """A U-Net with two levels: images float32 (n, 28, 28) to one logit per pixel, float32 (n, 28, 28).

    The encoder halves the resolution twice, the decoder doubles it twice, and each decoder level sees the encoder's
    features of its own resolution (Ronneberger, Fischer, Brox 2015, arXiv:1505.04597, figure 1).
    """

    def two_convolutions(features: tf.Tensor, width: int) -> tf.Tensor:
        for _ in range(2):
            features = tf.keras.layers.Conv2D(width, 3, padding="same", activation="relu")(features)
        return features

    image = tf.keras.layers.Input(IMAGE_SHAPE)
    fine = two_convolutions(tf.keras.layers.Reshape((*IMAGE_SHAPE, 1))(image), filters)
    middle = two_convolutions(tf.keras.layers.MaxPooling2D()(fine), 2 * filters)
    coarse = two_convolutions(tf.keras.layers.MaxPooling2D()(middle), 4 * filters)
    up = tf.keras.layers.Conv2DTranspose(2 * filters, 2, strides=2)(coarse)
    middle = two_convolutions(tf.keras.layers.Concatenate()([up, middle]), 2 * filters)
    up = tf.keras.layers.Conv2DTranspose(filters, 2, strides=2)(middle)
    fine = two_convolutions(tf.keras.layers.Concatenate()([up, fine]), filters)
    logits = tf.keras.layers.Conv2D(1, 1)(fine)
    return tf.keras.Model(image, tf.keras.layers.Reshape(IMAGE_SHAPE)(logits))


def text_classifier(units: int = 16) -> tf.keras.Model:
    """The mean of the words' vectors and a dense layer: words int32 (n, `topics.LENGTH`) to logits float32 (n, 4)."""
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input((topics.LENGTH,), dtype=tf.int32),
            tf.keras.layers.Embedding(len(topics.VOCABULARY), units),
            tf.keras.layers.GlobalAveragePooling1D(),
            tf.keras.layers.Dense(len(topics.NAMES)),
        ]
    )
