"""All 2^32 float32 values, rounded into the formats of 16 bits and fewer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from golden import BF16, FP16, FloatFormat, encode, kernels, quantize
from golden.formats import CB16, HALF_FORMATS, NARROW_FORMATS
from lab.exhaustive.check import Check, Comparison, compare_bits
from lab.exhaustive.rounding import codes_from_float32, values_of_codes

__all__ = ["quantiser_checks"]


@dataclass(frozen=True)
class _Cast:
    """The cast of another library, which judges float32 codes of a magnitude from `low` to below `high`."""

    name: str
    host: type
    low: int = 0
    high: int = 1 << 31

    def judge(self, inputs: NDArray[np.uint32], fmt: FloatFormat, wanted: NDArray[np.uint16]) -> Comparison | None:
        """Compare, unless the inputs, which lie in one exponent field, are outside this judge's range."""
        if not self.low <= int(inputs[0]) & 0x7FFFFFFF < self.high:
            return None
        with np.errstate(all="ignore"):
            cast: NDArray[Any] = inputs.view(np.float32).astype(self.host)
        codes = cast.view(np.uint16 if cast.itemsize == 2 else np.uint8)
        if fmt.has_nan:  # hosts keep the sign and the payload of a NaN; the contract has one NaN
            codes = np.where(fmt.is_nan(codes), codes.dtype.type(fmt.nan), codes)
        return compare_bits(self.name, inputs, codes, wanted)


def _cast_of_narrow(fmt: FloatFormat) -> _Cast:
    """ml_dtypes' cast where codes differ: from two exponents below the smallest value to two above the largest."""
    low, high = fmt.emin - fmt.fraction_bits - 2, fmt.emax + 3
    name = f"ml_dtypes' {fmt} from 2^{low} to 2^{high}"
    return _Cast(name, getattr(ml_dtypes, fmt.name), (127 + low) << 23, (127 + high) << 23)


_CASTS = {
    # Where its result is no normal number, NumPy's cast takes twenty times as long.
    FP16: _Cast("NumPy's float16 from 2^-14 to 2^16", np.float16, (127 - 14) << 23, (127 + 16) << 23),
    BF16: _Cast("ml_dtypes' bfloat16", ml_dtypes.bfloat16),
    **{fmt: _cast_of_narrow(fmt) for fmt in NARROW_FORMATS},
}


def _compare(fmt: FloatFormat) -> Callable[[int, int], Comparison]:
    path, cast = kernels.kernel_info()["path"], _CASTS.get(fmt)

    def compare(start: int, stop: int) -> Comparison:
        inputs = np.arange(stop - start, dtype=np.uint32) + np.uint32(start)
        values, wanted = inputs.view(np.float32), codes_from_float32(inputs, fmt)
        found = compare_bits(f"encode on {path}", inputs, encode(values, fmt), wanted)
        rounded = quantize(values, fmt).view(np.uint32)
        found.add(compare_bits(f"quantize on {path}", inputs, rounded, values_of_codes(fmt)[wanted]))
        judged = cast.judge(inputs, fmt, wanted) if cast else None
        if judged:
            found.add(judged)
        return found

    return compare


def quantiser_checks(formats: Sequence[FloatFormat] = (*HALF_FORMATS, CB16, *NARROW_FORMATS)) -> list[Check]:
    """Return one check for each format: `encode` and `quantize` on the path in use, and the cast of another library."""
    checks = []
    for fmt in formats:
        against = ", ".join(["integer rounding", *([_CASTS[fmt].name] if fmt in _CASTS else [])])
        checks.append(Check(f"float32_to_{fmt}", 1 << 32, against, _compare(fmt), by_processes=True))
    return checks
