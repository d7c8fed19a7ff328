"""``python -m lagpu``: the command line."""

import sys

from lagpu.cli import main

if __name__ == "__main__":
    sys.exit(main())
