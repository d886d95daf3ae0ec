"""Combinational cores with plain ports: no clock, no handshake, no state.

A conversion is a shift in two halves, to the right or to the left as the formats ask for, and `ConversionRound`. A
fused step is `Unpack` twice, `Multiply` (the exact product), then `Compare`, `Align`, `Add`, `CountLeadingZeros`,
`Normalise`, `Round`. Pipelines put registers between them; proofs take them as they are.
"""
