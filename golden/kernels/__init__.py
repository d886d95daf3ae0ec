"""Compiled kernels beneath the array functions of `golden`: the same bits, faster.

The library is C++ (`source/`), built when the package is installed and loaded at first use; without a compiler the
install succeeds all the same, and NumPy serves. `use` chooses among the `paths` that a machine runs.
"""

from golden.kernels.library import kernel_info, paths, use

__all__ = ["kernel_info", "paths", "use"]
