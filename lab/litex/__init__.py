"""A LiteX SoC, simulated: C on its processor multiplies with the matrix engine, and golden judges.

``python -m lab.litex`` builds and runs it; it needs the extra ``litex`` and a C compiler for RISC-V.
"""
