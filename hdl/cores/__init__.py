"""Combinational cores with plain ports: no clock, no handshake, no state.

A conversion is `Unpack`, `Rescale`, `Round`. A fused step is `Unpack` twice, `Multiply` (the exact product), then
`Compare`, `Align`, `Add`, `CountLeadingZeros`, `Normalise`, `Round`. Pipelines put registers between them; proofs take
them as they are.
"""
