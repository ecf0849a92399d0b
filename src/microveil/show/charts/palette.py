"""Colours of Okabe and Ito, which people can tell apart with any colour vision."""

BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"
PINK = "#CC79A7"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREY = "#A0A0A0"
BLACK = "#000000"

BEFORE, AFTER = SKY, VERMILION
CURVES = (BLUE, VERMILION, GREEN, PINK, ORANGE, SKY)
"""Of curves, in this order."""
