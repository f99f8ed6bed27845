"""Episodes of a policy: compiled loops, blocks of episodes, and their parallel execution.

What the costs mean is the business of `evaluation`.
"""
