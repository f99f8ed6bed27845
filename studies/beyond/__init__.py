"""Beyond the paper: the network on many constraint samples, and small models with known optima.

`python -m studies.beyond --out FOLDER` runs it, and `--quick` a small version of it in minutes.
"""
