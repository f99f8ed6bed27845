"""Studies of the method on one model: contraction, sensitivity, and whether the weights matter."""
