"""The plumbing of the course: data, devices, measuring, drawing, executing and checking.

Importing it, which must happen before TensorFlow is imported, selects the course's Keras (see `distlab.environment`),
and lets errors that a user can mend end a program in a sentence (see `distlab.plain_errors`).
"""

from distlab.environment import apply
from distlab.plain_errors import show_alone

apply()
show_alone()
