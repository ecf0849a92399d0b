"""Hostile cases against the promises of microveil: `script/fuzz [SECONDS]`.

Each fuzzer is a function of a seeded `random.Random` and an empty folder. It makes a case, runs it,
and returns what came of it: «released», «refused», and so on. It raises `Broken` if a promise does
not hold; any other exception is a crash. What the case read and wrote is in its folder.
"""
