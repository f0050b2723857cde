"""The assignors that consumers run themselves in a classic group, as the client of its leader computes them."""
