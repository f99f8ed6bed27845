"""The single queue of the paper: Table 1, its two figures, and the demonstration."""
