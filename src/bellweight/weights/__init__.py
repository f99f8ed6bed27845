"""How the weights are chosen: the loop of Algorithm 1, the methods that run in it, and their steps.

A method says where to begin, which policy to generate and how to update; the loop does the rest.
"""
