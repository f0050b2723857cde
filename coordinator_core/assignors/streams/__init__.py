"""Assignors of the broker for streams groups (KIP-1071)."""
