"""`python -m kente` is `kente`."""

import sys

from kente.cli import main

if __name__ == "__main__":
    sys.exit(main())
