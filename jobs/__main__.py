"""``python -m jobs``: the command line."""

from jobs.cli.app import main

if __name__ == "__main__":
    main()
