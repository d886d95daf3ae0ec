"""Faults that a generator puts into the netlists of the units, and the verdict on each.

`lab.mutants` has bugs that we thought of. Here a program makes them. Yosys writes a unit's netlist word by word, each
with its line of `hdl`, and `lab.netlists.candidates` lists the possible faults of every cell. Some thousands of them,
of every module and kind, are judged one by one:

1. `make sim`'s own stimulus, with its own expectations: 511 faulty copies of a unit and the unit itself are simulated
   at once, a bit of each machine word for each (`planes.cpp`, on the gates of `tools.sliced`). A fault is caught if its
   copy delivers anything else than what golden says, or nothing, or breaks a promise that the bench checks.
2. Induction proves that some others are no faults (`equivalence`).
3. The proofs of `lab.proofs` about the same line of `hdl` refute the rest, or allow it (`proofs`).

Whatever is left then has survived. docs/faults.md lists it with a reason. ``python -m
lab.faults`` or ``make faults`` runs all of it, in half an hour.
"""
