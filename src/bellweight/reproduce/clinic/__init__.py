"""The clinic of the paper: Tables 3 and 4 by column generation, Table 5 in full."""
