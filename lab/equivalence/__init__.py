"""Is the Verilog of every unit, after a change, equivalent to that before it?

A redesign that is to change nothing is compared with a revision, or two folders of Verilog with each other. Each unit
becomes gates and registers (`aiger`). Registers that a random run never sees to differ are taken to be the same, in
classes; induction over cycles keeps those that must be (`correspondence`). Names, modules and the order of things do
not count; what a port shows in any cycle does, also ahead of the first reset.

``python -m lab.equivalence REVISION`` compares the released units with those of the working tree, in about ten
minutes; with ``--variants`` every depth, fewer levels, units without flags and so on. It cannot prove a register that
is encoded in another way, or one whose value differs while nobody looks: those are for `lab.proofs` to tell.
"""
