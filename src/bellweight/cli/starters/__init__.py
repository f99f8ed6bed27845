"""Models to begin with: one commented file for each kind, written out by `bellweight new`.

They are copied as they are, so each reads like a user's own file and solves without changes.
"""
