"""Is the Verilog of every unit, after a change, equivalent to that before it?

A redesign that is to change nothing is compared with a revision, or two folders of Verilog with each other. Each unit
becomes gates and registers (`unit`). Registers that a random run never sees to differ are taken to be the same, in
classes; induction over cycles keeps the registers that must be (`correspondence`). Names, modules and their order do
not count. The values of ports in all cycles do, also ahead of the first reset.

``python -m lab.equivalence REVISION`` compares the released units with the working tree, in about ten
minutes; with ``--variants`` every depth, fewer levels, units without flags and so on. It cannot prove a register that
is encoded in another way, or one whose value differs while nobody looks; `lab.proofs` can.

ABC, in the Yosys that this project installs, decides less: ``dprove`` and ``dsec`` prove a restructured
``mac_cbfloat16`` (2,917 registers) in 8 processor seconds, but had not decided the ``vector_mac`` of the same two
revisions after 66. The search here takes 5, and names the output that differs. Yosys' ``equiv_make``, ``equiv_struct``,
``equiv_simple`` and ``equiv_induct`` pair registers by name, so that they leave renamed registers and a doubled one
open, and they call a register that starts at another value proven.
"""
