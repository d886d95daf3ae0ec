"""The cocotb tests of the engine."""

from __future__ import annotations

import os
from typing import Any

import cocotb
import numpy as np

from golden.formats import CBFLOAT16
from hdl.matrix_engine.parameters import EngineParameters
from sim.engine.bench import MEMORY, EngineBench
from sim.engine.commands import Command, memory_with, random_command
from sim.engine.units import UNITS

PARAMETERS = EngineParameters(**UNITS[os.environ.get("CBFLOAT_ENGINE", "plain")])
SEED = int(os.environ.get("CBFLOAT_ENGINE_SEED", "1"))
EFFORT = float(os.environ.get("CBFLOAT_ENGINE_EFFORT", "1"))


async def started(dut: Any) -> EngineBench:
    """The engine after a reset, its memory filled with noise, its interrupt enabled."""
    bench = await EngineBench.made(dut, SEED)
    await bench.reset()
    bench.memory = bench.rng.integers(0, 256, MEMORY).astype(np.uint8)
    await bench.write("INTERRUPT", 1)
    return bench


def prepared(bench: EngineBench, command: Command) -> tuple[np.ndarray, int]:
    """Fill A and B; return the memory and the flags after the command."""
    memory = bench.memory
    memory_with(command, memory, bench.rng)
    bench.memory = memory
    flags = command.run(memory, PARAMETERS.subnormals)
    return memory, flags if PARAMETERS.flags else 0


@cocotb.test()
async def engine_on_a_plain_product_is_golden(dut: Any) -> None:
    bench = await started(dut)
    plain = {
        "format": PARAMETERS.operands[0], "a_transposed": False, "b_transposed": True, "gap": 0, "batch_gap": 0,
        "batches": 1, "a_float32": False, "b_float32": False, "d_format": None,
    }  # fmt: skip
    for number, (m, n, k) in enumerate(((1, 1, 1), (2, 2, 4), (8, 8, 16), (5, 7, 70), (17, 19, 23))):
        command = random_command(bench.rng, PARAMETERS, MEMORY, m=m, n=n, k=k, tag=number, **plain)
        expected, flags = prepared(bench, command)
        await bench.submit(command)
        await bench.expect(command, expected, flags)


@cocotb.test()
async def engine_on_random_commands_is_golden(dut: Any) -> None:
    bench = await started(dut)
    for number in range(int(60 * EFFORT)):
        bench.press_back((0.0, 0.0, 0.3, 0.7)[bench.rng.integers(4)])
        command = random_command(bench.rng, PARAMETERS, MEMORY, tag=number & 0xFF)
        expected, flags = prepared(bench, command)
        await bench.submit(command)
        try:
            await bench.expect(command, expected, flags)
        except Exception:
            print("command", number, command)
            raise


assert CBFLOAT16 in PARAMETERS.operands
