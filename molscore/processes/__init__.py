"""Worker processes that answer in order: fresh interpreters fed through pipes."""
