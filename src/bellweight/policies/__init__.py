"""Policies: which action, with what probability, in which state.

Their classes, and the layouts in which tables, compiled event models and linear models read them.
"""
