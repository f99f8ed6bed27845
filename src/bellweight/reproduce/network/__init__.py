"""The eight-dimensional network of the paper: Table 2, its picture, and how the weights settle."""
