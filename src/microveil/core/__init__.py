"""The mathematics: NumPy and numba only, no tables."""
