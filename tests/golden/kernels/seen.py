"""Is a fault in the kernels' source seen? Its library's results are compared with NumPy's."""

import numpy as np
import pytest

from golden import kernels

#: The paths that this machine runs.
RUN = [path for path in ("avx512", "avx2", "portable") if path in kernels.paths()]


def differences(results, wanted):
    """How many numbers of all arrays that `results()` gives differ."""
    return sum(int(np.count_nonzero(got != want)) for got, want in zip(results(), wanted, strict=True))


def assert_seen(name, fault, builder, load, results, wanted):
    """Build a library with one fault, a path and its `Change`, and require that its results differ on that path."""
    path, change = fault
    if path not in RUN:
        pytest.skip(f"this machine does not run {path}")
    load(builder.build(name.replace(" ", "-").replace(",", ""), change, path=path), [path])
    with kernels.use(path):
        assert differences(results, wanted) > 0
