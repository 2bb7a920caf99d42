"""The steps of a collective: read from the event log (`history`) and drawn as a strip or an animation.

`strip` and `animation` are reached through `Trace`. Both place `stamps`: the `chunk_boxes` of each rank, a `legend`.
"""
