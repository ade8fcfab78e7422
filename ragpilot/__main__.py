"""``python -m ragpilot``: the same as the `ragpilot` command."""

from ragpilot.cli import main

if __name__ == "__main__":
    main()
