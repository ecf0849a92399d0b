"""Attacks × methods × ε × data: how risky and how useful releases are, on one map."""
