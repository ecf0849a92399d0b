"""`python -m microveil` is the command line."""

from microveil.cli.commands import main

main()
