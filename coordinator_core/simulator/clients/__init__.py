"""Clients for every type of group, which behave as the Java clients do, or misbehave as the scenario says."""
