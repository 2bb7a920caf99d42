"""Slides for lecturers: one reveal.js deck per chapter, cut by rule from the tagged cells of its notebook.

`blocks` divides the text of a cell, `storyboard` makes slides of the tagged cells and notes of the rest, `rendering`
lets nbconvert write the deck, `build` writes all decks, their index and reveal.js. `static/` has template and style.

It may import what `course_tools` may. Begin with `storyboard`, whose TAGS say what a cell can be tagged with.
"""
