"""Measures of a release against its original, one module for each family."""
