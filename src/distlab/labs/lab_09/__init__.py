"""Lab 09, Horovod: the eight steps as a puzzle and as functions."""
