"""A table that is differentially private as released: cells, counts, a model, and rows of it."""
