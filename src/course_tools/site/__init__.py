"""The course's site: chapters as executed, labs, handbooks and reference as pages that need neither server nor network.

`build` gathers the source pages (`sources`, `index_page`), runs Sphinx with `conf` and publishes what it made. Sphinx
calls `extension`, which lists the names of the `reference` and changes each page as it is read: `notebook_pages` turns
the cells of a notebook into those of its page, with `quizzes`, and `wrong_answers` shows what a lab's check says.
`static/` has the style sheet and the script of the pages, `templates/` what is different from the theme.

Begin with `build`; to change how a cell looks, with `notebook_pages`.
"""
