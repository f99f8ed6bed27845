"""Random models against independent references: one number, one case.

    python -m tests.fuzz --from 0 --to 10000 --jobs 2 --resume     a long run, from the repository
    python -m tests.fuzz --case 1234                               one case, told in full
    python -m tests.fuzz --named                                   the cases that failed once

References are exact: rational arithmetic on the numbers of the model as they are stored. Nothing
here uses the solvers, the rows, the duals or the bounds of the code under test.
"""
