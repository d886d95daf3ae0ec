"""The engine for matrices that docs/extending-lanes.md sketches: its text as it stands there, against golden."""

import re

import numpy as np
import pytest
from amaranth.sim import Simulator

import golden
from golden import CBFLOAT16
from hdl.verilog import to_verilog
from tools.paths import ROOT

ROWS, COLUMNS, DEPTH, CHUNK = 2, 3, 7, 3


@pytest.fixture(scope="module")
def sketched():
    """The class of the page."""
    page = (ROOT / "docs" / "extending-lanes.md").read_text(encoding="utf-8")
    (text,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "class MatrixMac" in block]
    names: dict = {}
    exec(compile(text, "docs/extending-lanes.md", "exec"), names)
    return names["MatrixMac"]


@pytest.mark.parametrize("stages", [1, 11])
def test_sketched_matrix_engine_at_every_level_is_golden(sketched, stages):
    unit = sketched(ROWS, COLUMNS, flags=False, stages=stages)
    rng = np.random.default_rng(19)
    a = golden.encode(rng.normal(size=(3, ROWS, DEPTH)), CBFLOAT16)
    b = golden.encode(rng.normal(size=(3, DEPTH, COLUMNS)), CBFLOAT16)
    wanted = [golden.matmul(a[n], b[n], operand=CBFLOAT16, level=n, chunk=CHUNK) for n in range(3)]
    beats = [
        {"level": n, "register": 2 * n, "first": k == 0, "last": k == DEPTH - 1,
         "a": [int(code) for code in a[n][:, k]], "b": [int(code) for code in b[n][k]]}
        for k in range(DEPTH) for n in range(3)
    ]  # fmt: skip
    got = {}

    async def bench(ctx):
        waiting = list(beats)
        ctx.set(unit.chunk, CHUNK)
        ctx.set(unit.o.ready, 1)
        for _ in range(600):
            ctx.set(unit.i.valid, bool(waiting))
            if waiting:
                ctx.set(unit.i.payload, waiting[0])
            if waiting and ctx.get(unit.i.ready):
                waiting.pop(0)
            if ctx.get(unit.o.valid):
                o = ctx.get(unit.o.payload)
                assert o.error.value == 0
                got[o.register // 2] = [o.results[lane] for lane in range(ROWS * COLUMNS)]
            await ctx.tick()
            if len(got) == 3:
                return

    simulator = Simulator(unit)
    simulator.add_clock(1e-8)
    simulator.add_testbench(bench)
    simulator.run()
    assert got == {n: [int(code) for code in wanted[n].reshape(-1)] for n in range(3)}


def test_sketched_matrix_engine_becomes_verilog(sketched):
    text = to_verilog(sketched(2, 2, flags=False, registers=2), "matrix_mac")
    assert "module matrix_mac(" in text
    assert all(f"lane_{lane}" in text for lane in range(4))
