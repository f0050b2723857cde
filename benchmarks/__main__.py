"""All benchmarks in turn: ``python -m benchmarks [NAME...]``. Each prints ratios of medians of several runs."""

import subprocess
import sys
from pathlib import Path

NO_BENCHMARK = ("__init__", "__main__", "generate", "workers")


def main() -> None:
    known = sorted(file.stem for file in Path(__file__).parent.glob("*.py") if file.stem not in NO_BENCHMARK)
    if unknown := set(sys.argv[1:]) - set(known):
        sys.exit(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    failed = []
    for name in sys.argv[1:] or known:
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode:
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
