"""Optimizers whose step in each layer is in proportion to the norm of the layer's weights.

LARS, layer-wise adaptive rate scaling: You, Gitman, Ginsburg (2017), arXiv:1708.03888, algorithm 1.
LAMB, layer-wise adaptive moments: You et al. (2020), arXiv:1904.00962, algorithm 2.
"""

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
            self.velocities = [self.add_variable_from_reference(each, "velocity") for each in variables]

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

    def get_config(self) -> dict[str, object]:
        """What `from_config` needs to make the same optimizer; Horovod's wrapper does so."""
        rate = self._serialize_hyperparameter(self._learning_rate)
        own = {"learning_rate": rate, "momentum": self.momentum, "trust": self.trust, "decay": self.decay}
        return {"name": self.name} | own


class LAMB(tf.keras.optimizers.Optimizer):
    """Adam in which each layer's step is in proportion to the norm of its weights.

    For the weights x of a layer and their gradient g in step t, with learning rate η and weight decay λ:

        moments      m = β₁ m + (1 - β₁) g,   v = β₂ v + (1 - β₂) g²
        direction    r = m / (1 - β₁ᵗ) / (√(v / (1 - β₂ᵗ)) + ε)
        weights      x = x - η |x| / |r + λ x| · (r + λ x)

    The paper's φ is the identity here. A variable of one dimension (a bias, a scale of batch normalisation) takes
    Adam's step, without the ratio and without decay, as in the usual implementations: a bias starts at zero, so the
    ratio would keep it there. So does any layer while one of the two norms is zero.
    """

    def __init__(
        self,
        learning_rate: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        decay: float = 0.0,
        name: str = "LAMB",
    ) -> None:
        super().__init__(name=name)
        self._learning_rate = self._build_learning_rate(learning_rate)
        self.beta_1, self.beta_2, self.epsilon, self.decay = beta_1, beta_2, epsilon, decay

    def build(self, variables: list[tf.Variable]) -> None:
        """Make both moments for each variable."""
        super().build(variables)
        if not hasattr(self, "first_moments"):
            self.first_moments = [self.add_variable_from_reference(each, "first_moment") for each in variables]
            self.second_moments = [self.add_variable_from_reference(each, "second_moment") for each in variables]

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
        """Change one variable by one step."""
        index = self._index_dict[self._var_key(variable)]
        first, second = self.first_moments[index], self.second_moments[index]
        step = tf.cast(self.iterations + 1, variable.dtype)
        first.assign(self.beta_1 * first + (1 - self.beta_1) * gradient)
        second.assign(self.beta_2 * second + (1 - self.beta_2) * tf.square(gradient))
        unbiased = first / (1 - self.beta_1**step), second / (1 - self.beta_2**step)
        update = unbiased[0] / (tf.sqrt(unbiased[1]) + self.epsilon)
        ratio = 1.0
        if variable.shape.rank > 1:
            update += self.decay * variable
            weight_norm, update_norm = tf.norm(variable), tf.norm(update)
            is_usable = (weight_norm > 0) & (update_norm > 0)
            ratio = tf.where(is_usable, tf.math.divide_no_nan(weight_norm, update_norm), 1.0)
        variable.assign_sub(self.learning_rate * ratio * update)

    def get_config(self) -> dict[str, object]:
        """What `from_config` needs to make the same optimizer; Horovod's wrapper does so."""
        own = {"learning_rate": self._serialize_hyperparameter(self._learning_rate), "decay": self.decay}
        return {"name": self.name, "beta_1": self.beta_1, "beta_2": self.beta_2, "epsilon": self.epsilon} | own
