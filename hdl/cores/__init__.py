"""Combinational cores: no clock, no handshake, no state (except for registers that a `multiplier` may have).

A conversion is three components with plain ports, see `conversion`. A fused step is a sequence of functions on bundles
of values, which `fused_step` calls in order; a pipeline places registers between them. Operands are normalised
(`operand`) and multiplied (`multiplier`, `product`). The product is added to the accumulator on two parallel paths
(`near`, `far`), which join before rounding (`round_step`). NaNs, infinities and flags are decided in parallel
(`outcome`). Conversions, steps and the constants of `hdl.FloatShape` share one rounding table (`rounding`).
"""
