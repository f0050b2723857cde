"""The assignors that consumers run themselves in a classic group, as its leader's Java client computes them."""
