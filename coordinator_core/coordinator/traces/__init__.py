"""Recorded steps of Kafka's own coordinator, run against the model."""
