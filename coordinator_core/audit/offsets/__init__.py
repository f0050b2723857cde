"""Committed offsets through time: the steps of each partition, and the lag where end offsets are known."""
