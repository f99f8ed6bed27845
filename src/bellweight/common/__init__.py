"""What every room uses: statuses and errors, checks of arguments, tolerances, files, streams.

Nothing here knows what a model is.
"""
