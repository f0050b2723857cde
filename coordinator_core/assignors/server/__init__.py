"""Assignors of the broker for consumer groups (KIP-848) and share groups (KIP-932)."""
