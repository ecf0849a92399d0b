"""Evaluation, the verdict, the next step, and the search for a better plan."""
