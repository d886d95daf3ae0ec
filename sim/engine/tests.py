"""The cocotb tests of the engine."""

from __future__ import annotations

import contextlib
import itertools
import os
from dataclasses import replace
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

import golden
from golden.formats import FP32, FloatFormat
from hdl.matrix_engine.control import COUNTERS, ControlRegisters
from hdl.matrix_engine.parameters import EngineParameters, code_of
from hdl.matrix_engine.registers import QUEUE_DEPTH, REGISTERS, Access, EngineError, Initial, register_named
from sim.engine.bench import MEMORY, EngineBench, Refused
from sim.engine.commands import Command, changed, memory_with, random_command, words_of
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
    plain: dict[str, Any] = {
        "format": PARAMETERS.operands[0], "a_transposed": False, "b_transposed": True, "gap": 0, "batch_gap": 0,
        "batches": 1, "a_float32": False, "b_float32": False, "d_format": None,
    }  # fmt: skip
    for number, (m, n, k) in enumerate(((1, 1, 1), (2, 2, 4), (8, 8, 16), (5, 7, 70), (17, 19, 23))):
        command = random_command(bench.rng, PARAMETERS, MEMORY, m=m, n=n, k=k, tag=number, **plain)
        expected, flags = prepared(bench, command)
        await bench.submit(command)
        await bench.expect(command, expected, flags)


@cocotb.test()
async def engine_counts_no_flags_of_elements_beyond_the_edges(dut: Any) -> None:
    bench = await started(dut)
    fmt = PARAMETERS.operands[0]
    plain: dict[str, Any] = {
        "batches": 1, "a_float32": False, "b_float32": False, "d_format": None, "initial": Initial.NONE,
        "format": fmt, "level": PARAMETERS.levels[-1],
    }  # fmt: skip
    # Both halves of block RAM fill with large numbers, whose products overflow; then a product of ones, which is exact.
    large = {"m": PARAMETERS.block_rows, "n": PARAMETERS.block_columns, "k": 2 * PARAMETERS.depth}
    for number, (a_transposed, b_transposed) in enumerate(itertools.product((False, True), repeat=2)):
        for sizes, value in ((large, fmt.max_finite), ({"m": 1, "n": 1, "k": 3}, fmt.one)):
            command = random_command(
                bench.rng, PARAMETERS, MEMORY, tag=number, a_transposed=a_transposed, b_transposed=b_transposed,
                **sizes, **plain,
            )  # fmt: skip
            memory = bench.memory
            for matrix in (command.a, command.b):
                matrix.put(memory, np.full((1, matrix.rows, matrix.columns), value))
            bench.memory = memory
            flags = command.run(memory, PARAMETERS.subnormals)
            assert value != fmt.one or not flags
            await bench.submit(command)
            await bench.expect(command, memory, flags if PARAMETERS.flags else 0)


@cocotb.test()
async def engine_on_random_commands_is_golden(dut: Any) -> None:
    bench = await started(dut)
    for number in range(int(60 * EFFORT)):
        bench.press_back((0.0, 0.0, 0.3, 0.7)[bench.rng.integers(4)])
        # None, a matrix and a row in turn, so that no bin stays empty.
        initial = Initial(number % 3 if PARAMETERS.initial else 0)
        command = random_command(bench.rng, PARAMETERS, MEMORY, tag=number & 0xFF, initial=initial)
        expected, flags = prepared(bench, command)
        await bench.submit(command)
        await bench.expect(command, expected, flags)


def _every_kind(rng: np.random.Generator, fmt: FloatFormat, shape: tuple[int, ...]) -> np.ndarray:
    """Initial values with every kind of value among `_KINDS` neighbours in a row."""
    codes = [fmt.min_subnormal, fmt.min_normal - 1, fmt.min_normal, fmt.max_finite, fmt.inf, fmt.nan, fmt.inf | 1, 0]
    special = [code | sign for code in codes for sign in (0, fmt.sign_mask)]
    return np.resize(rng.permutation([*special, int(golden.encode(rng.normal(), fmt))]), shape)


_KINDS = 17


def _kinds(codes: np.ndarray, fmt: FloatFormat) -> set[str]:
    """The kinds of values among initial values."""
    magnitudes = codes & ~np.array(fmt.sign_mask, codes.dtype)
    kinds = {
        "+0": codes == 0, "-0": codes == fmt.sign_mask, "subnormal": (magnitudes > 0) & (magnitudes < fmt.min_normal),
        "normal": (magnitudes >= fmt.min_normal) & (magnitudes < fmt.inf), "infinity": magnitudes == fmt.inf,
        "signalling NaN": (magnitudes > fmt.inf) & (magnitudes < fmt.nan), "NaN": magnitudes >= fmt.nan,
    }  # fmt: skip
    return {name for name, found in kinds.items() if found.any()}


@(cocotb.test() if PARAMETERS.initial else lambda test: test)
async def engine_from_initial_values_of_every_kind_is_golden(dut: Any) -> None:
    bench = await started(dut)
    required = {"+0", "-0", "subnormal", "normal", "infinity", "signalling NaN", "NaN"}
    formats: list[FloatFormat | None] = [None, *dict.fromkeys(PARAMETERS.result_formats)]
    for initial, level, has_products in itertools.product(
        (Initial.MATRIX, Initial.ROW), PARAMETERS.levels, (False, True)
    ):
        seen: set[str] = set()
        for number, d_format in enumerate(formats if not has_products else formats[:1]):
            command = random_command(
                bench.rng, PARAMETERS, MEMORY, m=int(bench.rng.integers(3, 12)), n=int(bench.rng.integers(_KINDS, 24)),
                k=3 * has_products, batches=2, initial=initial, level=level, d_format=d_format, tag=number,
            )  # fmt: skip
            assert command.c is not None
            memory = bench.memory
            memory_with(command, memory, bench.rng)
            # No special factors, so that the initial value shows.
            for matrix in (command.a, command.b):
                fmt = FP32 if matrix.size == 4 else command.format
                shape = (matrix.batches, matrix.rows, matrix.columns)
                matrix.put(memory, golden.encode(bench.rng.normal(size=shape), fmt))
            shape = (command.c.batches, command.c.rows, command.c.columns)
            command.c.put(memory, _every_kind(bench.rng, command.outer, shape))
            seen |= _kinds(command.c.get(memory), command.outer)
            bench.memory = memory
            flags = command.run(memory, PARAMETERS.subnormals)
            await bench.submit(command)
            await bench.expect(command, memory, flags if PARAMETERS.flags else 0)
        assert seen == required, (initial, level, has_products, required - seen)


def _refusals(command: Command) -> dict[EngineError, list[Command]]:
    """Commands that must be refused, each made from a valid command by changing words of registers."""
    options, size = command.registers()["OPTIONS"], PARAMETERS.size_bits
    field = register_named("OPTIONS").field

    def option(**given: int) -> int:
        word = options
        for name, value in given.items():
            word = word & ~field(name).mask | value << field(name).low
        return word

    unknown = next(code for code in range(16) if code not in [code_of(fmt) for fmt in PARAMETERS.operands])
    stride, places_of_c = command.d.row_stride, []
    if command.c is not None:
        its_bytes = command.c.end - command.c.address
        places_of_c = [(command.d.address, command.k), (max(0, command.d.address + 4 - its_bytes), command.k)]
        places_of_c.append(((command.d.end - 1) // 4 * 4, 0))
    refused: dict[EngineError, list[dict[str, int]]] = {
        EngineError.FORMAT: [{"OPTIONS": option(format=unknown)}, {"OPTIONS": option(d_converted=1, d_format=9)}],
        EngineError.LEVEL: [
            {"OPTIONS": option(level=level)} for level in range(4) if level not in PARAMETERS.levels
        ],
        EngineError.ROUNDING: [{"OPTIONS": option(rounding=mode)} for mode in range(8) if mode not in PARAMETERS.modes],
        EngineError.CHUNK: [{"CHUNK": 1 << PARAMETERS.chunk_bits}] if PARAMETERS.chunk_bits < 32 else [],
        EngineError.SIZE: [{name: 1 << size} for name in ("M", "N", "K", "BATCHES")],
        EngineError.INITIAL: [{"OPTIONS": option(initial=value)} for value in ((3,) if command.c else (1, 2, 3))],
        EngineError.ALIGNMENT: [
            {f"{name}_{what}": getattr(matrix, what.lower()) + 1}
            for name, matrix in (("A", command.a), ("B", command.b), ("C", command.c), ("D", command.d))
            if matrix is not None
            for what in ("ADDRESS", "ROW_STRIDE", "BATCH_STRIDE")
        ],
        EngineError.STRIDE: [
            {"D_ROW_STRIDE": command.d.columns * command.d.size - command.d.size},
            {"D_ROW_STRIDE": 0},
            {"D_BATCH_STRIDE": 0},
            {"D_BATCH_STRIDE": (command.d.rows - 1) * stride + (command.d.columns - 1) * command.d.size},
        ],
        EngineError.RANGE: [
            {f"{name}_ADDRESS_HIGH": 1} for name in ("ABCD" if command.c else "ABD") if PARAMETERS.address_bits <= 32
        ] + [{"A_ROW_STRIDE": 0xFFFFFFFC}, {"D_ADDRESS": (1 << PARAMETERS.address_bits) - 16}],
        EngineError.OVERLAP: [
            {"D_ADDRESS": command.a.address // 4 * 4},
            {"D_ADDRESS": (command.b.end - 2) // 4 * 4},
            # In place; with its last element in the first one of D, and the other way round.
            *({"C_ADDRESS": at, "K": k} for at, k in places_of_c),
        ],
    }  # fmt: skip
    return {error: [changed(command, **words) for words in all_words] for error, all_words in refused.items()}


@cocotb.test()
async def engine_refuses_what_it_cannot_do_and_touches_nothing(dut: Any) -> None:
    bench = await started(dut)
    command = random_command(
        bench.rng, PARAMETERS, MEMORY, m=3, n=4, k=5, batches=2, gap=0, batch_gap=0, d_format=None,
        a_transposed=False, b_transposed=False, **({"initial": Initial.MATRIX} if PARAMETERS.initial else {}),
    )  # fmt: skip
    before = bench.memory
    tag = 0
    for error, commands in _refusals(command).items():
        for refused in commands:
            tag = (tag + 1) & 0xFF
            await bench.submit(replace(refused, tag=tag))
            found = await bench.result()
            assert (EngineError(found["error"]), found["tag"]) == (error, tag), (error, found, refused.words)
    assert not bench.read_words
    assert not bench.written
    assert (bench.memory == before).all()
    expected, flags = prepared(bench, command)
    await bench.submit(command)
    await bench.expect(command, expected, flags)


@cocotb.test()
async def engine_with_commands_in_its_queue_runs_them_in_order(dut: Any) -> None:
    bench = await started(dut)
    for _ in range(max(1, int(3 * EFFORT))):
        await bench.write("INTERRUPT", 0)
        commands: list[Command] = []
        memory = bench.memory
        taken: set[int] = set()
        while len(commands) < 1 + QUEUE_DEPTH:
            # The first one runs for so long that the others wait.
            sizes = {} if commands else {"m": 12, "n": 12, "k": 60, "batches": 1}
            command = random_command(bench.rng, PARAMETERS, MEMORY, tag=0xF0 + len(commands), most=12, **sizes)
            own = set().union(*(set(each.bytes_of().ravel().tolist()) for each in (*command.read, command.d)))
            if taken & own:
                continue
            taken |= own
            memory_with(command, memory, bench.rng)
            commands.append(command)
        bench.memory = memory
        flags = [command.run(memory, PARAMETERS.subnormals) for command in commands]
        bench.press_back(0.95)
        for command in commands:
            await bench.submit(command)
        status = await bench.fields("STATUS")
        assert (status["queued"], status["can_submit"]) == (QUEUE_DEPTH, 0), status
        with contextlib.suppress(Refused):
            await bench.write("SUBMIT", 1)
            raise AssertionError("a full queue took a command")
        bench.press_back(0.0)
        await bench.idle()
        assert not int(dut.interrupt.value), "an interrupt that is not enabled"
        assert (await bench.fields("STATUS"))["results"] == len(commands)
        await bench.write("INTERRUPT", 1)
        for command, its_flags in zip(commands, flags, strict=True):
            found = await bench.result()
            assert (found["error"], found["tag"]) == (0, command.tag)
            assert found["flags"] == (its_flags if PARAMETERS.flags else 0)
        assert (bench.memory == memory).all()
        bench.check_touched(*commands)
        assert not (await bench.fields("RESULT"))["valid"]


def _large(bench: EngineBench, **given: Any) -> Command:
    sizes = {"m": 9, "n": 10, "k": 40, "batches": 2} | given
    return random_command(bench.rng, PARAMETERS, MEMORY, **sizes)


def _only_d_differs(bench: EngineBench, command: Command, before: np.ndarray, after: np.ndarray) -> None:
    """Check that every byte of the memory is as before, or lies in D and is as after the command."""
    memory, inside = bench.memory, np.zeros(MEMORY, bool)
    inside[command.d.bytes_of()] = True
    wrong = np.flatnonzero((memory != before) & ~(inside & (memory == after)))
    assert not len(wrong), f"{len(wrong)} bytes are neither old nor new, the first at {wrong[0]:#x}"


@cocotb.test()
async def engine_after_an_error_of_the_bus_ends_the_command_and_stays_usable(dut: Any) -> None:
    bench = await started(dut)
    for number in range(int(16 * EFFORT)):
        bench.press_back((0.0, 0.5)[number % 2])
        # Every fourth time a row of C cannot be read.
        given = {"initial": Initial.MATRIX} if PARAMETERS.initial and number % 4 == 3 else {}
        command = replace(_large(bench, **given), tag=number)
        expected, _ = prepared(bench, command)
        before = bench.memory
        on_write = not given and bool(bench.rng.integers(2))
        if given and command.c is not None:
            bench.bad_reads = {int(bench.rng.choice(sorted(words_of(command.c, bench.width))))}
        elif on_write:
            bench.bad_writes = {int(bench.rng.choice(command.d.bytes_of().ravel()))}
        else:
            bench.bad_reads = {int(bench.rng.choice(sorted(command.allowed_words(bench.width))))}
        await bench.submit(command)
        found = await bench.result()
        wanted = EngineError.WRITE if on_write else EngineError.READ
        assert (EngineError(found["error"]), found["tag"]) == (wanted, number), (wanted, found)
        _only_d_differs(bench, command, before, expected)
        bench.check_touched(command)
        bench.bad_reads, bench.bad_writes = set(), set()
        command = replace(random_command(bench.rng, PARAMETERS, MEMORY, most=9), tag=0x80 + number)
        expected, flags = prepared(bench, command)
        await bench.submit(command)
        await bench.expect(command, expected, flags)


@cocotb.test()
async def engine_when_stopped_in_any_cycle_drains_the_bus_and_stays_usable(dut: Any) -> None:
    bench = await started(dut)
    for number in range(int(24 * EFFORT)):
        kind = ("abort", "reset", "pin")[number % 3]
        bench.press_back((0.85, 0.0)[number // 3 % 2])
        # Without C, with a matrix and with a row, in turn. C is read soon after the check.
        initial = Initial(number % 5 % 3 if PARAMETERS.initial else 0)
        command = replace(_large(bench, batches=1, initial=initial), tag=number)
        expected, flags = prepared(bench, command)
        before = bench.memory
        await bench.submit(command)
        most = 350 if initial and number % 2 else 700
        await ClockCycles(dut.aclk, int(bench.rng.integers(0, most)))
        if kind == "pin":
            await bench.reset()
            await bench.write("INTERRUPT", 1)
        elif kind == "reset":
            await bench.write("CONTROL", 0b10)
            bench.held.clear()
            await bench.idle()
            status = await bench.fields("STATUS")
            assert (status["results"], status["queued"]) == (0, 0), status
            assert not any([await bench.read(name) for name in ("M", "OPTIONS", "D_ADDRESS", "CYCLES", "INTERRUPT")])
            await bench.write("INTERRUPT", 1)
        else:
            await bench.write("CONTROL", 0b01)
            found = await bench.result()
            assert found["tag"] == number
            assert EngineError(found["error"]) in (EngineError.NONE, EngineError.ABORTED)
            if not found["error"]:
                assert found["flags"] == flags
                assert (bench.memory == expected).all()
        _only_d_differs(bench, command, before, expected)
        bench.check_touched(command)
        command = replace(random_command(bench.rng, PARAMETERS, MEMORY, most=9), tag=0x80 + number)
        expected, flags = prepared(bench, command)
        await bench.submit(command)
        await bench.expect(command, expected, flags)


@cocotb.test()
async def engine_registers_read_back_and_count(dut: Any) -> None:
    bench = await started(dut)
    for register in REGISTERS:
        if register.is_command:
            word = int(bench.rng.integers(1, 1 << 32))
            await bench.write(register.name, word)
            bench.held[register.name] = word
            assert await bench.read(register.name) == word, register.name
        elif register.access is Access.READ:
            with contextlib.suppress(Refused):
                await bench.write(register.name, 0xFFFFFFFF)
                raise AssertionError(f"{register.name} took a write")
        elif register.access is Access.WRITE and register.name != "SUBMIT":
            assert await bench.read(register.name) == 0
    for name, word in ControlRegisters(PARAMETERS).constants().items():
        assert await bench.read(name) == word, name
    command = replace(_large(bench, batches=1, a_float32=False, b_float32=False), tag=7)
    expected, flags = prepared(bench, command)
    await bench.write("CONTROL", 0b100)
    await bench.submit(command)
    await bench.expect(command, expected, flags)
    tiles = -(-command.m // PARAMETERS.rows) * -(-command.n // PARAMETERS.columns)
    counts = {name: await bench.read(name) for name in COUNTERS}
    assert counts["PRODUCTS"] == tiles * command.k, counts
    stalls = counts["STALLS_LOAD"] + counts["STALLS_ARRAY"]
    assert counts["PRODUCTS"] + stalls <= counts["CYCLES"], counts
    await bench.write("CONTROL", 0b100)
    assert not any([await bench.read(name) for name in COUNTERS])
