"""`python -m bellweight`: the command line, where its command is not on the path."""

from bellweight.cli import main

if __name__ == "__main__":
    main()
