"""Clients of every type of group, that behave as the Java clients do, or misbehave as told."""
