"""What people see: words, charts, screens and reports."""
