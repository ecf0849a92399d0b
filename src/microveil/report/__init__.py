"""Pages for people: the private report of a release, and its public certificate."""
