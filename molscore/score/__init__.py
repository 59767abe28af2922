"""SCORE: depth as repeated, contractive application of one block (arXiv 2603.10544).

    h[t+1] = (1 - dt) * h[t] + dt * F(h[t])

Nothing here knows of chemistry or graphs. `plan` describes an architecture in words and does
not import torch; `integrators` and `depth` carry it out.
"""
