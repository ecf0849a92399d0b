"""Attacks on a release: one module for each attacker."""
