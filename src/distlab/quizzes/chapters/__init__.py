"""The templates of the questions: ten functions per chapter, in the order of its text.

`distlab.quizzes.item` says how to write one. A function whose name begins with an underscore is no template.
"""
