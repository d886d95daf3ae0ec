"""Parts of a unit that it clears, besides those that a reset clears."""

from __future__ import annotations

from amaranth import ClockDomain, DomainRenamer, Module, Value

__all__ = ["cleared"]


def cleared(m: Module, sync: ClockDomain, clear: Value) -> DomainRenamer:
    """Make a clock domain that `clear` resets, too; return what puts a part into it.

    Amaranth's ``ResetInserter`` changes assignments alone: neither a primitive with a reset (`hdl.cores.copies`) nor
    ``ResetSignal()`` in a part would notice `clear`.

    Parameters
    ----------
    m : Module
    sync : ClockDomain
        The domain of the unit.
    clear : Value
    """
    domain = ClockDomain("cleared", local=True)
    domain.clk = sync.clk
    m.domains += domain
    m.d.comb += domain.rst.eq(sync.rst | clear)
    return DomainRenamer("cleared")
