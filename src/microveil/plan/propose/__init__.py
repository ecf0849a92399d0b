"""Proposals: what a column holds, and what should become of it."""
