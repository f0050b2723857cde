"""Simulated clusters: a scenario and a seed decide what clients do, and what the coordinator model writes becomes
a log.
"""
