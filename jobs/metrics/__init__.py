"""Metrics about groups, for Prometheus."""
