"""Which topics existed when, and the metadata hash that proves it."""
