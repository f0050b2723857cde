"""Where the wider tiers find real logs and recorded results; absent on a plain clone."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
CORPUS = SHARED / "corpus"
VECTORS = SHARED / "vectors"
TRACES = SHARED / "traces"
