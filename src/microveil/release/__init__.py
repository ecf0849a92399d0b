"""The plan meets the table, and what comes out."""
