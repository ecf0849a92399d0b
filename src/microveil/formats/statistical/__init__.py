"""SPSS, Stata and SAS files."""
