"""Settings that the tests of the hardware share."""

from tests.shared import one_yosys

__all__ = ["one_yosys"]
