"""``python -m golden``: show values, codes and formats."""

from golden.cli import main

raise SystemExit(main())
