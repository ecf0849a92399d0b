"""The sentences people read, made from facts once for terminal, page, report and notebook."""
