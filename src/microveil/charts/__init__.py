"""Every chart, drawn once."""
