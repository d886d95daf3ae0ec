"""The coverage tells rounding cases apart by exact arithmetic, not by what golden rounds to."""

import numpy as np
import pytest

from golden import CBFLOAT16, encode
from sim.stimulus.coverage import classes, rounding_cases


@pytest.mark.parametrize(
    ("high", "low", "case"),
    [
        (1.0, 0.0, "exact"),
        (1.0 + 2.0**-10, 0.0, "tie"),
        (-1.0 - 2.0**-10, 0.0, "tie"),
        (1.0 + 2.0**-10, 2.0**-60, "above_half"),
        (1.0 + 2.0**-10, -(2.0**-60), "below_half"),
        (-1.0 - 2.0**-10, -(2.0**-60), "above_half"),
        (1.0, 2.0**-60, "below_half"),
        (1.0, -(2.0**-60), "above_half"),
        (2.0**-40, 0.0, "tie"),
        (1e30, 0.0, "overflow"),
        (np.inf, 0.0, "not_finite"),
    ],
)
def test_rounding_cases_of_one_value(high: float, low: float, case: str) -> None:
    result = np.array([encode(high, CBFLOAT16)])
    assert rounding_cases(np.array([high]), np.array([low]), result, CBFLOAT16).tolist() == [case]


def test_classes_of_specials() -> None:
    codes = np.array([0x8000, 0x0001, 0x3E00, 0xFE00, 0x7F00, 0x7E01], np.uint64)
    expected = ["zero", "subnormal", "normal", "infinity", "nan", "signalling"]
    assert classes(codes, CBFLOAT16).tolist() == expected
