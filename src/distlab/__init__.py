"""The plumbing of the course: data, devices, measuring, drawing, executing and checking.

Importing it, which must happen before TensorFlow is imported, selects the course's Keras (see
`distlab.runtime.environment`), and lets errors that a user can fix end a program in a sentence.
"""

from distlab.runtime.environment import apply
from distlab.runtime.errors import show_alone

apply()
show_alone()
