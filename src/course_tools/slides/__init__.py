"""Slides for lecturers: one reveal.js deck per chapter, cut by rule from the tagged cells of its notebook.

`blocks` divides the text of a cell, `storyboard` makes slides of the tagged cells and notes of the rest, `markup` is
the HTML of what a slide shows, `build` writes all decks, their index and reveal.js. `static/` has templates and style.

It may import what `course_tools` may. Begin with `storyboard`, which says what a cell can be tagged with.
"""
