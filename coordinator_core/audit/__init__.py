"""Recomputed targets, protocol rules, findings and what-if."""
