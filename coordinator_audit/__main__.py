"""``python -m coordinator_audit`` is the command ``coordinator-audit``."""

from jobs.cli.app import main

if __name__ == "__main__":
    main()
