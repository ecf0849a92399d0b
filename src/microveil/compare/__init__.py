"""An original and its release, side by side, and figures of how they differ."""
