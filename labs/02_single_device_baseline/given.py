"""The symptoms of the lecture's program, and the causes to choose from; not which cause belongs to which symptom."""

SYMPTOMS = {
    "loss": "the loss before training is far from ln 10",
    "clock": "half a second of waiting takes next to no time",
    "steps": "with more replicas an epoch has as many steps as before",
}

CAUSES = (
    "the loss takes logits for probabilities",
    "the learning rate is too large",
    "the weights begin too large",
    "the clock counts processor time",
    "the clock starts before the work",
    "the clock stops before the work has ended",
    "the batch size that was computed is not used",
    "the last batch is dropped",
    "the images are not shuffled",
)
