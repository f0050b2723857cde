"""A night and questions by clients of other versions of Spark and Python, each in an environment of its own."""
