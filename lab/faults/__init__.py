"""Faults that a generator puts into the netlists of the units, and what becomes of each.

`lab.mutants` has bugs that we thought of. This room makes bugs by a program: of every cell of a unit's netlist,
as Yosys writes it, word by word and with the line of `hdl` that it comes from, `candidates` knows what could be wrong
with it (`fault.KINDS`). Some thousands of these, of every module and kind, are judged one by one:

1. `make sim`'s own stimulus, with its own expectations: 511 faulty copies of a unit and the unit itself are simulated
   at once, a bit of each machine word for each (`planes.cpp`). A fault is caught if its copy delivers anything else
   than what golden says, or nothing, or breaks a promise that the bench checks.
2. What is left is proven to be no fault, by induction (`equivalence`), or
3. refuted, or allowed, by the proofs of `lab.proofs` about the same line of `hdl` (`proofs`).

Whatever then is left has survived, and is kept in docs/faults.md with a reason. ``python -m
lab.faults`` or ``make faults`` runs all of it, in half an hour.
"""
