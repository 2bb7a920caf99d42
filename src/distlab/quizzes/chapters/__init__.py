"""The templates of the questions, one module per chapter, each with ten functions in `TEMPLATES`.

A template draws its numbers by name, computes the right answer with distlab, and each wrong one as somebody would who
makes the mistake that it names.
"""
