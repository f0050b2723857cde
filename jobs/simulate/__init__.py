"""Write simulated logs, in one process or as Spark tasks."""
