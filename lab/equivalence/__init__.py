"""Is the Verilog of every unit equivalent before and after a change?

It compares a redesign that must change nothing with a revision, or two folders of Verilog with each other. Each unit
becomes gates and registers (`unit`). Registers that never differ in a random run form classes and are assumed equal;
induction over cycles keeps those that must be equal (`correspondence`). Names, modules and their order do not count.
The values of ports in all cycles do, also before the first reset.

``python -m lab.equivalence REVISION`` compares the released units with the working tree, in about ten
minutes; with ``--variants`` every depth, fewer levels, units without flags and so on. It cannot prove a register that
is encoded in another way, or one whose value differs while nothing reads it; `lab.proofs` can.

ABC, in the Yosys that this project installs, decides less: ``dprove`` and ``dsec`` prove a restructured
``mac_cbfloat16`` (2,917 registers) in 8 processor seconds. After 66 seconds they had not decided the ``vector_mac`` of
the same two revisions. The search here takes 5 seconds, and names the output that differs. Yosys' ``equiv_make``,
``equiv_struct``, ``equiv_simple`` and ``equiv_induct`` pair registers by name. So they decide neither renamed nor
duplicated registers, and call a register with another initial value proven.
"""
