"""The course's site: chapters as executed, labs, handbooks and reference as pages that need neither server nor network.

`build` gathers the source pages (`sources`, `index_page`, `reference`) and lets Sphinx make HTML of them. Sphinx calls
`extension`, which changes what it reads: `notebook_pages` for notebooks (questions become quizzes, solutions are added
to labs), `films` for animations, `formulas` for mathematics. `pictures` makes the files of figures smaller. `static/`
has the style sheet and the script of the pages, `templates/` what is different from the theme.

It may import `runtime` and the teaching library. Begin with `build`.
"""
