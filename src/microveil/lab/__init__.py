"""For researchers: the audit, the attack benchmark, and the paper's experiments."""
