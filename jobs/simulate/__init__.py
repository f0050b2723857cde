"""Simulation of scenarios: in one process, or as a Spark job."""
