"""What a policy costs and where it spends its time, exactly or by simulation.

Occupancies, exact values, `evaluate`, `compare` and `race`.
"""
