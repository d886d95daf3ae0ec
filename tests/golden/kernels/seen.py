"""Is a fault in the kernels' source seen? Its library's results are compared with NumPy's."""

import numpy as np

from golden import kernels

#: The paths that this machine runs.
RUN = [path for path in ("avx512", "avx2", "portable") if path in kernels.paths()]


def differences(results, wanted):
    """How many numbers of all arrays that `results()` gives differ."""
    return sum(int(np.count_nonzero(got != want)) for got, want in zip(results(), wanted, strict=True))


def is_seen(results, wanted):
    """Tell whether any array differs; the first that does ends the comparison."""
    return any((got != want).any() for got, want in zip(results(), wanted, strict=True))


def in_paths(**faults):
    """Return pairs of a path and a `Change` by the names of faults, given by path."""
    return {name: (path, change) for path, table in faults.items() for name, change in table.items()}


def changes_of(faults):
    """Return the changes of each fault that this machine can run, a pair of a path and a `Change`."""
    return {name: [change] for name, (path, change) in faults.items() if path in RUN}
