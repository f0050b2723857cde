"""What Java's collections do that assignors depend on: hash codes, the order of a walk, trees and heaps."""
