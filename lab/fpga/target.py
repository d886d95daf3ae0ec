"""The device that is measured on."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SPEED_GRADES", "Target"]

SPEED_GRADES = (6, 7, 8)


@dataclass(frozen=True, kw_only=True)
class Target:
    """A device of the ECP5 family with the frequency that the tools aim at.

    Parameters
    ----------
    speed : int
        Speed grade: 6 is the slowest, 8 the fastest.
    megahertz : int
        Target frequency, out of reach on purpose: below it the tools would stop improving.

    Raises
    ------
    ValueError
        If there is no such speed grade.
    """

    device: str = "LFE5U-85F"
    package: str = "CABGA756"
    speed: int = 6
    megahertz: int = 400

    def __post_init__(self) -> None:
        if self.speed not in SPEED_GRADES:
            raise ValueError(f"speed: got {self.speed}, must be one of {SPEED_GRADES}")

    @property
    def options(self) -> list[str]:
        """The options of nextpnr, except the seed and the files."""
        size = self.device.rpartition("-")[2].rstrip("F").lower()
        return [
            f"--{size}k", "--package", self.package, "--speed", str(self.speed), "--freq", str(self.megahertz),
            "--router", "router1", "--lpf-allow-unconstrained", "--timing-allow-fail",
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"Lattice {self.device}, {self.package}, speed grade {self.speed}"
