"""The narrow formats of other libraries: ml_dtypes, PyTorch and gfloat, asked for codes as the contract has them."""

from __future__ import annotations

import gfloat
import ml_dtypes
import numpy as np
from gfloat import RoundMode

from golden import FP16, FloatFormat, Rounding

GFLOAT_MODES = {
    Rounding.NEAREST_EVEN: RoundMode.TiesToEven,
    Rounding.TOWARD_ZERO: RoundMode.TowardZero,
    Rounding.DOWN: RoundMode.TowardNegative,
    Rounding.UP: RoundMode.TowardPositive,
    Rounding.NEAREST_AWAY: RoundMode.TiesToAway,
}


def host(fmt: FloatFormat) -> type:
    """The type of NumPy or ml_dtypes."""
    return np.float16 if fmt == FP16 else getattr(ml_dtypes, fmt.name)


def judged(values: np.ndarray, fmt: FloatFormat) -> np.ndarray:
    """ml_dtypes' code, or ours where it has none: the sign of a NaN, and NaN in a format without one."""
    with np.errstate(all="ignore"):
        codes = values.astype(np.float32).astype(host(fmt)).view(np.uint8)
    if fmt.has_nan:
        return np.where(fmt.is_nan(codes), fmt.nan, codes)
    return np.where(np.isnan(values), 0, codes)


def gfloat_info(fmt: FloatFormat) -> gfloat.FormatInfo:
    """The format in gfloat."""
    return gfloat.FormatInfo(
        fmt.name,
        fmt.width,
        fmt.precision,
        bias=fmt.bias,
        is_signed=True,
        domain=gfloat.Domain.Extended if fmt.has_inf else gfloat.Domain.Finite,
        has_nz=fmt.has_negative_zero,
        num_high_nans={"ieee": 2**fmt.fraction_bits - 1, "fn": 1, "fnuz": 0, "finite": 0}[fmt.specials],
        has_subnormals=True,
        is_twos_complement=False,
    )


def gfloat_codes(values: np.ndarray, fmt: FloatFormat, mode: RoundMode, saturates: bool, **words: object) -> np.ndarray:
    """gfloat's codes of values without NaNs; a format with neither infinity nor NaN must saturate, too."""
    info = gfloat_info(fmt)
    rounded = gfloat.round_ndarray(info, values, mode, saturates or fmt.specials == "finite", **words)
    return gfloat.encode_ndarray(info, rounded)
