"""Side-by-side measurements, run by script/bench. None of them is a test."""
