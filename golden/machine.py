"""What every accumulator of another machine is: whose it is, which operands it takes, and what it refuses."""

from __future__ import annotations

from dataclasses import dataclass

from golden.formats import FP32, FloatFormat
from golden.rounding import Rounding

__all__ = ["UNKNOWN", "Machine", "Provenance"]


@dataclass(frozen=True)
class Provenance:
    """Where a preset comes from.

    Parameters
    ----------
    machine, instructions : str
        What it describes.
    formats : tuple of str
        The operand formats that the machine has; others of as many bits are computed by the same rule.
    source : str
        Who says so.
    documented, reverse_engineered, unknown : str
        Which part of the rule the maker publishes, which others found by experiment, and which nobody has told.
    """

    machine: str
    instructions: str
    formats: tuple[str, ...]
    source: str
    documented: str
    reverse_engineered: str
    unknown: str


#: Of a rule that no preset has.
UNKNOWN = Provenance("your own machine", "any", (), "not given", "not given", "not given", "not given")


class Machine:
    """The accumulator of a machine that sums products in its own way; `golden.accumulators` has them."""

    provenance: Provenance

    @property
    def outer(self) -> FloatFormat:
        """The format of the total and of the result."""
        return FP32

    @property
    def has_flags(self) -> bool:
        """Whether the flags of a result are known."""
        return False

    @property
    def roundings(self) -> tuple[Rounding, ...]:
        """The modes that a product can ask for."""
        return (Rounding.NEAREST_EVEN,)

    def check_operand(self, operand: FloatFormat) -> None:
        """Refuse operands for which the machine has another rule or none.

        Raises
        ------
        ValueError
            If the machine has no products of the format.
        """
        raise NotImplementedError

    def refuse(
        self,
        *,
        return_flags: bool = False,
        counts: bool = False,
        rounding: Rounding = Rounding.NEAREST_EVEN,
        flushes: bool = False,
    ) -> None:
        """Refuse what a machine's accumulator does not have: flags, counts, rounding modes, a choice of subnormals.

        Raises
        ------
        ValueError
            If one of them is asked for.
        """
        machine = self.provenance.machine
        if return_flags and not self.has_flags:
            raise ValueError(
                f"return_flags: got True, must be False: the flags of {machine} are not modelled; a Reduction has flags"
            )
        if counts:
            raise ValueError(
                f"counts: got True, must be False: {machine} does not round step by step; a Reduction has counts"
            )
        if rounding not in self.roundings:
            if len(self.roundings) > 1:
                names = ", ".join(map(str, self.roundings))
                raise ValueError(f"rounding: got {rounding}, must be one of {names}: {machine} has no other")
            raise ValueError(
                f"rounding: got another mode than nearest_even, must be nearest_even: the roundings of {machine} are "
                "fixed; out_rounding may be any mode, and a Reduction takes every mode"
            )
        if flushes:
            raise ValueError(
                f"subnormals: got 'flush', must be 'keep': the accumulator of {machine} has a rule of its own for them"
            )
