"""Sentences about results, for the terminal, the page, reports, notebooks and certificates."""
