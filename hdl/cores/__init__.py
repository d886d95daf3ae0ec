"""Combinational cores: no clock, no handshake, no state (except for registers that a `multiplier` may have).

A conversion is three components with plain ports, see `conversion`. A fused step is a row of functions from bundles of
values to bundles of values, put in order in `fused_step`, between which a pipeline puts its registers: operands are
normalised (`operand`), multiplied (`multiplier`, `product`), and added to the accumulator on two paths side by side
(`near`, `far`), which meet to be rounded (`round_step`); NaNs, infinities and flags are decided beside (`outcome`).
Conversions and steps, and the constants of `hdl.FloatShape`, round by one table (`rounding`).
"""
