"""Reading logs: dumps in every format, a live broker, and log files without Spark."""
