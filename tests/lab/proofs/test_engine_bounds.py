"""The proofs of the engine's bounds: commands meet their premises, and every pinned fault of the engine has one."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.registers import Initial
from lab.mutants.table import pinned
from lab.proofs.along_engine.matrices import SIZES
from lab.proofs.along_engine.walk import Walk
from lab.proofs.along_model.induction import MOST
from lab.proofs.catalogue import proofs
from lab.proofs.engine_bounds import PARTS

ONES = (1 << MOST) - 1
#: Blocks of 8 x 8 and slices of 16, so that small matrices have several.
SMALL = EngineParameters(rows=2, columns=2, registers=16, depth=16)


def command_of(chance):
    """Return a command that the checker accepts, and the ends of its matrices."""
    command = {name: chance.randint(1, 20) for name in ("m", "n")}
    command |= {"k": chance.choice((0, 1, 16, 37)), "batches": chance.randint(1, 2)}
    options = {f"{name}_{what}": chance.randint(0, 1) for name in "ab" for what in ("transposed", "float32")}
    options |= {"level": chance.randint(0, 2), "initial": chance.choice(list(Initial))}
    ends, at = {}, chance.randrange(0, 4096, 4)
    for name, (rows, columns) in SIZES.items():
        stored = [command[rows], command[columns]]
        stored = stored[::-1] if options.get(f"{name}_transposed") else stored
        if name == "c" and options["initial"] == Initial.ROW:
            stored[0] = 1
        size = 4 if options.get(f"{name}_float32", options["level"] != 2) else 2
        row = stored[1] * size + chance.randrange(0, 64, 4)
        batch = stored[0] * row + chance.randrange(0, 64, 4)
        end = at + (command["batches"] - 1) * batch + max(stored[0] - 1, 0) * row + stored[1] * size
        command |= {f"{name}_address": at, f"{name}_row_stride": row, f"{name}_batch_stride": batch}
        ends[name], at = end, end + chance.randrange(0, 64, 4) + 4 & ~3
    return command | {"options": options}, ends


def lines_of(command):
    """Return how many lines of A, B and C a command needs."""
    m, n, k = (command[name] for name in ("m", "n", "k"))
    blocks = [(min(8, m - i), min(8, n - j), min(16, k - at)) for i in range(0, m, 8) for j in range(0, n, 8)
              for at in range(0, k, 16)]  # fmt: skip
    options = command["options"]
    rows_of_c = {Initial.NONE: 0, Initial.ROW: -(-m // 8), Initial.MATRIX: m}[options["initial"]] * -(-n // 8)
    return {
        "c": command["batches"] * rows_of_c * (1 if options["level"] == 2 else 2),
        "a": command["batches"] * sum(here[2 if options["a_transposed"] else 0] for here in blocks),
        "b": command["batches"] * sum(here[1 if options["b_transposed"] else 2] for here in blocks),
    }


@pytest.mark.long
def test_walk_of_random_commands_meets_premises_conditions_and_claims_and_hands_on_every_line():
    chance, top = random.Random(1), Walk(SMALL)

    async def testbench(ctx):
        for _ in range(9):
            command, ends = command_of(chance)
            lines = {"a": 0, "b": 0, "c": 0}
            ctx.set(top.command, command)
            ctx.set(top.ends, ends)
            ctx.set(top.start, 0)
            await ctx.tick()
            ctx.set(top.start, 1)
            while True:
                for name in ("lines_ready", "blocks_ready", "slices_ready", "loaded"):
                    ctx.set(getattr(top, name), chance.randint(0, 1))
                assert ctx.get(top.legal) == 1
                for kind in ("conditions", "claims"):
                    assert ctx.get(getattr(top, kind)) == ONES, top.names[kind]
                if ctx.get(top.tiler.lines.valid) and ctx.get(top.lines_ready):
                    line = top.tiler.lines.payload
                    lines["c" if ctx.get(line.is_c) else "b" if ctx.get(line.is_b) else "a"] += 1
                await ctx.tick()
                ctx.set(top.start, 0)
                if ctx.get(top.tiler.is_done):
                    break
            assert lines == lines_of(command)

    simulator = Simulator(top)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()


def test_every_part_but_the_arithmetic_has_a_pinned_fault_that_its_proof_must_catch():
    tried = {proof.split("/")[2] for fault in pinned() for proof in fault.proofs if proof.startswith("engine/")}
    assert tried == PARTS.keys() - {"arithmetic"}
    assert len([proof for proof in proofs() if proof.claim.startswith("engine/bounds/")]) == 18
