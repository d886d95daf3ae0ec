"""Faults that a generator puts into the netlists of the units, and the verdict on each.

`lab.mutants` has bugs that we thought of. Here a program makes them. Yosys writes a unit's netlist word by word, each
word with its line of `hdl`, and `lab.netlists.candidates` lists the possible faults of every cell. Some thousands of
them, of every module and kind, are judged one by one:

1. Simulation uses the stimulus and the expectations of `make sim`. It runs 511 faulty copies of a unit and the unit
   itself at once, each in its own bit of the machine words (`planes.cpp`, on the gates of `tools.sliced`). A fault is
   caught if its copy gives a result that differs from golden's, gives none, or breaks a rule that the bench checks.
2. Induction proves that some of the others change nothing (`equivalence`).
3. The proofs of `lab.proofs` about the same line of `hdl` refute the rest, or allow it (`proofs`).

Any fault still left has survived. docs/faults.md lists the survivors with reasons. ``python -m
lab.faults`` or ``make faults`` runs all steps, in half an hour.
"""
