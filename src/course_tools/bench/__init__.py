"""`make bench`: what the course takes and gives on this machine, measured in one run and held against the last release.

`measures` says what a measurement is, `parts` lists them, `comparison` names what became worse, `page` shows it all.
No test depends on a figure in it.
"""
