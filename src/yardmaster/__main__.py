"""`python -m yardmaster` is the command line."""

from yardmaster.cli.app import main

main()
