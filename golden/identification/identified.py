"""What was found about a device."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from golden.accumulator import Accumulator
from golden.files import write_whole
from golden.formats import FloatFormat
from golden.identification.disclosure import disclosed
from golden.identification.findings import Finding
from golden.identification.fit import Candidate
from golden.presets import accumulators
from golden.reduction import Reduction

__all__ = ["Identified"]


@dataclass(frozen=True)
class Identified:
    """What a device computes.

    Parameters
    ----------
    operand, out : FloatFormat
        Formats of its factors and results.
    model : Reduction, Accumulator or None
        Computes the same; None if nothing of these families does.
    findings : tuple of Finding
        Statements, each with the sum that shows it.
    nearest : tuple of Candidate
        Models that come near, with their share of right results; where there is a model, that one.
    verified : int
        Random sums of hard kinds that model and device computed alike, in every bit.
    failing : Finding or None
        Without a model: the shortest sum found that the nearest model computes otherwise.
    """

    operand: FloatFormat
    out: FloatFormat
    model: Reduction | Accumulator | None
    findings: tuple[Finding, ...]
    nearest: tuple[Candidate, ...]
    verified: int
    failing: Finding | None = None

    @property
    def reduction(self) -> Reduction | None:
        """The model as a reduction, which `str` writes as one line of text."""
        if self.model is None or isinstance(self.model, Reduction):
            return self.model
        return Reduction(operand=self.operand, out=self.out, accumulator=self.model)

    @property
    def name(self) -> str | None:
        """Name of the model in `golden.accumulators`, if it has one."""
        return next((name for name, each in accumulators.items() if each == self.model), None)

    @property
    def disclosure(self) -> str | None:
        """The model in the words of RISC-V's integrated matrix extension: (G, psm, rnd), or why it has none."""
        return None if self.model is None else disclosed(self.model, self.operand, self.out)

    def text(self) -> str:
        """Return the report."""
        lines = [f"operands in {self.operand}, results in {self.out}", ""]
        if self.model is not None:
            name = f" ({self.name})" if self.name else ""
            lines += [f"The device computes{name}:", f"    {self.reduction}"]
            lines += [f"verified on {self.verified:,} results of random hard sums, every bit equal"]
            lines += [f"disclosure by RISC-V's matrix extension: {self.disclosure}", ""]
        else:
            lines += ["No model was found that computes what the device does. The nearest, by the share of hard sums:"]
            lines += [f"    {each.share:8.3%}  {each.model}" for each in self.nearest]
            lines += ["", *([str(self.failing), ""] if self.failing else [])]
        lines += [f"- {finding}" for finding in self.findings]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def save(self, path: str | Path) -> None:
        """Write the report as text, or as JSON where the file's name ends in ``.json``.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        path = Path(path)
        if path.suffix != ".json":
            write_whole(path, (self.text() + "\n").encode())
            return
        content = {
            "operand": str(self.operand),
            "out": str(self.out),
            "model": str(self.reduction) if self.model else None,
            "verified": self.verified,
            "nearest": [{"model": str(each.model), "share": each.share} for each in self.nearest],
            "findings": [
                {"statement": each.statement, "products": each.products, "result": each.result}
                for each in (*self.findings, *([self.failing] if self.failing else []))
            ],
        }
        write_whole(path, (json.dumps(content, indent=1) + "\n").encode())
