"""Sentences for people: the only place that makes them, errors and warnings excepted."""
