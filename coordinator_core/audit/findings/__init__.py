"""Findings about the health of a group: what an operator should look at, the most urgent first."""
