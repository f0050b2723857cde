"""Requests of Connect groups on KIP-848."""
