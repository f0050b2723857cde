"""Connect groups as proposed on KIP-848."""
