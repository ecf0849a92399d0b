"""What the user wants, checked in itself."""
