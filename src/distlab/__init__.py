"""The code of the course. Importing it, before TensorFlow is imported, selects the course's Keras, and nothing else.

Begin with `simulate` and `collectives` for the algorithms, `launch` for real processes, `labs` for the exercises, and
docs/architecture.md for the rest. What importing sets is in `distlab.runtime.environment`.
"""

from distlab.runtime.environment import apply

apply()
