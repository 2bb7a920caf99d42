"""LARS, layer-wise adaptive rate scaling: You, Gitman, Ginsburg (2017), arXiv:1708.03888, algorithm 1."""

import distlab  # noqa: F401  before TensorFlow: selects tf-keras

# isort: split
import tensorflow as tf


class LARS(tf.keras.optimizers.Optimizer):
    """SGD with momentum in which each layer's step is in proportion to the norm of its weights.

    For the weights w of a layer and their gradient g, with learning rate γ, trust coefficient η, weight decay β and
    momentum m (the paper's letters):

        local rate   λ = η |w| / (|g| + β |w|)
        velocity     v = m v + γ λ (g + β w)
        weights      w = w - v

    A variable of one dimension (a bias, a scale of batch normalisation) has λ = 1 and no decay, as in the usual
    implementations: a bias starts at zero, so its λ would keep it there. So has any layer while |w| or |g| is zero.
    """

    def __init__(
        self,
        learning_rate: float = 1.0,
        momentum: float = 0.9,
        trust: float = 0.001,
        decay: float = 0.0,
        name: str = "LARS",
    ) -> None:
        super().__init__(name=name)
        self._learning_rate = self._build_learning_rate(learning_rate)
        self.momentum, self.trust, self.decay = momentum, trust, decay

    def build(self, variables: list[tf.Variable]) -> None:
        """Make a velocity for each variable."""
        super().build(variables)
        if not hasattr(self, "velocities"):
            self.velocities = [self.add_variable_from_reference(one, "velocity") for one in variables]

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
        """Change one variable by one step."""
        velocity = self.velocities[self._index_dict[self._var_key(variable)]]
        local_rate = 1.0
        if variable.shape.rank > 1:
            weight_norm, gradient_norm = tf.norm(variable), tf.norm(gradient)
            ratio = tf.math.divide_no_nan(self.trust * weight_norm, gradient_norm + self.decay * weight_norm)
            local_rate = tf.where((weight_norm > 0) & (gradient_norm > 0), ratio, 1.0)
            gradient += self.decay * variable
        velocity.assign(self.momentum * velocity + self.learning_rate * local_rate * gradient)
        variable.assign_sub(velocity)

    def get_config(self) -> dict:
        """What `from_config` needs to make the same optimizer; Horovod's wrapper does so."""
        rate = self._serialize_hyperparameter(self._learning_rate)
        own = {"learning_rate": rate, "momentum": self.momentum, "trust": self.trust, "decay": self.decay}
        return {"name": self.name} | own
