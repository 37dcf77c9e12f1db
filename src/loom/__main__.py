"""`loom` and `python -m loom`."""

import sys

from loom.edges.cli.main import main as command_line


def main() -> int:
    """Run the command line; the exit code."""
    return command_line(sys.argv[1:], compose="loom.compose")


if __name__ == "__main__":
    sys.exit(main())
