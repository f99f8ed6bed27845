"""Recipes made of several solves: `Auto`, `Resampled`, `Enriched`, and relatives of the program.

`solve` runs a plan like a method; what a plan returns has a policy, a cost and a file form.
"""
