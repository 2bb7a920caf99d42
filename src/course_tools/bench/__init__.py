"""`make bench`: what the course takes and gives on this machine, measured in one run and held against the last release.

`measures` says what a measurement is and when one became worse, `parts` lists them and writes the page. No test depends
on a figure in it.
"""
