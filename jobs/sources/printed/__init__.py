"""Records that a tool printed: as text, as JSON, or into the files of a sink. They are read back into rows of a log."""
