"""The command line: parse, call, print; no mathematics.

Exit codes:

    0    the run ended where it was meant to end
    1    something is wrong with the input or a file
    2    the command was used wrongly
    3    the run ended without converging; what it found is printed and saved all the same
    4    the linear program is unbounded, infeasible or could not be solved
    5    verify: the certificate does not hold
    130  interrupted; with --save, what was found is saved and the message says how to go on

Modules here import nothing heavy at the top, so that `bellweight --help` is quick.
"""

from bellweight.cli.main import main, run

__all__ = ["main", "run"]
