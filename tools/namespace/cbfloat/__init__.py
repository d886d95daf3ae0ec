"""The modules of `golden` and `hdl`, below the name of the distribution.

``import cbfloat.golden`` gives the very module that ``import golden`` gives, and so does every module below: objects of
one name work with those of the other. If Python finds another package called `golden` or `hdl`, an ImportError says
where.
"""

import sys

from cbfloat.aliases import Aliases

__all__: list[str] = []

if not any(isinstance(finder, Aliases) for finder in sys.meta_path):
    sys.meta_path.insert(0, Aliases())
