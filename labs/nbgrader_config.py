"""nbgrader's settings for these labs; copy it into the course folder, beside `source/`."""

c = get_config()  # noqa: F821  (nbgrader defines it)

# An untouched cell runs: the checks say "not done yet", and no traceback stops the notebook.
c.ClearSolutions.code_stub = {"python": "# Write your answer here.\n..."}
# A check may take 10 s, a cell that starts TensorFlow as much.
c.ExecutePreprocessor.timeout = 120
