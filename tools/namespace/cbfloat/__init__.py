"""The modules of `golden` and `hdl`, below the name of the distribution.

``import cbfloat.golden`` and ``import golden`` give the same module, and so do the names of all modules below, so that
their objects work together. If Python finds another package called `golden` or `hdl`, an ImportError says where.
"""

import sys

from cbfloat.aliases import Aliases

__all__: list[str] = []

if not any(isinstance(finder, Aliases) for finder in sys.meta_path):
    sys.meta_path.insert(0, Aliases())
