"""Engines: what clusters a table. `base` says what one must do."""
