"""What profiles of other programs hold: Horovod's timelines, MPI's calls, TensorFlow's traces and graphs."""
