"""Compiled loops, imported only when they are run."""
