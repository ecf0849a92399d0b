"""Measures of a release against its original: utility, risk and learning."""
