"""The steps of a collective: read from the event log (`history`) and drawn as a strip.

`strip` is reached through `Trace`. It places `stamps`: the `chunk_boxes` of each rank, a `legend`.
"""
