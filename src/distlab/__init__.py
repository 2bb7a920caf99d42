"""The plumbing of the course: data, devices, measuring, drawing, executing and checking.

Importing it, which must happen before TensorFlow is imported, selects the course's Keras (see `distlab.environment`).
"""

from distlab.environment import apply

apply()
