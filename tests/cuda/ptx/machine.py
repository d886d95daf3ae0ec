"""A machine that runs a kernel: the threads of some blocks at once, always those that are the farthest behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.cuda.ptx.arithmetic import operation
from tests.cuda.ptx.memory import PARAMETERS, Fault, GlobalMemory, LocalMemory, SharedMemory
from tests.cuda.ptx.program import BITS, Instruction, Kernel
from tests.cuda.ptx.registers import THREADS, Bits, Lanes, Registers, unsigned

__all__ = ["run"]

_BLOCKS = 8  # that run at once

Act = Callable[[Lanes], None]

_ATOMICS = {"add": np.add, "max": np.maximum}
_SPACES = ("param", "global", "shared", "local")


def run(kernel: Kernel, blocks: int, parameters: bytes, memory: GlobalMemory) -> None:
    """Run a kernel with blocks along x.

    Parameters
    ----------
    kernel : Kernel
    blocks : int
    parameters : bytes
        Its argument.
    memory : GlobalMemory
        What it may touch.

    Raises
    ------
    Fault
        If it does what no kernel may do.
    NotImplementedError
        If it has an instruction that the machine does not know.
    """
    if len(parameters) != kernel.sizes["param"]:
        raise Fault(f"{kernel.name}: {len(parameters)} bytes of parameters, must be {kernel.sizes['param']}")
    machines: dict[int, _Machine] = {}
    with np.errstate(all="ignore"):
        for first in range(0, blocks, _BLOCKS):
            count = min(_BLOCKS, blocks - first)
            if count not in machines:
                machines[count] = _Machine(kernel, count, parameters, memory)
            machines[count].run(first, blocks)
        memory.finish()


class _Machine:
    """The registers and memories of some blocks of a kernel, and what its instructions do with them."""

    def __init__(self, kernel: Kernel, blocks: int, parameters: bytes, memory: GlobalMemory) -> None:
        self._kernel, self._blocks, self._global = kernel, blocks, memory
        self._lanes = np.arange(blocks * THREADS)
        self._registers = Registers(kernel, self._lanes)
        self._parameters = np.frombuffer(parameters, np.uint8)
        self._shared: SharedMemory
        self._local: LocalMemory
        self._acts: list[list[Act]] = [[] for _ in kernel.blocks]  # of each block but for what ends it
        self._ends: list[Callable[[Lanes], dict[int, Lanes]]] = []
        self._thread = 0  # of all, the first one of these blocks
        self._line = ""
        for number, block in enumerate(kernel.blocks):
            last = block[-1] if block and block[-1].name[0] in ("bra", "ret", "bar") else None
            try:
                self._acts[number] = [self._act(instruction) for instruction in block[: -1 if last else None]]
                self._ends.append(self._end(last, number + 1))
            except NotImplementedError as error:
                raise NotImplementedError(
                    f"{kernel.name}: got {error}, which this machine does not know yet; the instructions that compute "
                    "stand in tests/cuda/ptx/arithmetic.py, those that move in machine.py"
                ) from None

    def run(self, first: int, blocks: int) -> None:
        """Run the blocks from a first one."""
        self._registers.name_blocks(first, blocks)
        self._thread = first * THREADS
        self._shared = SharedMemory(self._blocks, THREADS, self._kernel.sizes["shared"])
        self._local = LocalMemory(len(self._lanes), self._kernel.sizes["local"])
        ready: dict[int, Lanes] = {0: self._lanes}
        waiting: dict[int, Lanes] = {}
        try:
            while ready or waiting:
                if not ready:
                    self._meet(waiting)
                    ready, waiting = waiting, {}
                number = min(ready)
                lanes = ready.pop(number)
                for act in self._acts[number]:
                    act(lanes)
                block = self._kernel.blocks[number]
                to = waiting if block and block[-1].name[0] == "bar" else ready
                for target, some in self._ends[number](lanes).items():
                    to[target] = np.union1d(to[target], some) if target in to else some
            self._shared.finish()
        except Fault as fault:
            raise Fault(f"{self._kernel.name}: {fault}: {self._line}") from None

    def _meet(self, waiting: dict[int, Lanes]) -> None:
        if len(waiting) > 1 or len(next(iter(waiting.values()))) < len(self._lanes):
            met = ", ".join(f"{len(lanes)} threads before block {target}" for target, lanes in waiting.items())
            raise Fault(f"a barrier that not all {len(self._lanes)} threads reach: {met}")
        self._shared.barrier()

    # --- instructions ---

    def _act(self, instruction: Instruction) -> Act:
        what = instruction.name[0]
        if what in ("ld", "st"):
            act = self._move(instruction)
        elif what == "atom":
            act = self._atomic(instruction)
        elif what == "cp":
            act = self._copy(instruction)
        else:
            act = self._compute(instruction)
        if instruction.predicate:
            register, wanted = self._registers.named[instruction.predicate.register], instruction.predicate.wanted
            whole = act

            def act(lanes: Lanes) -> None:
                some = lanes[register[lanes] == wanted]
                if some.size:
                    whole(some)

        return act

    def _compute(self, instruction: Instruction) -> Act:
        found = operation(instruction.name)
        result, *operands = instruction.operands
        if len(operands) != len(found.sources):
            raise NotImplementedError(instruction.line)
        given = [self._registers.read(text, bits) for text, bits in zip(operands, found.sources, strict=True)]
        write, compute = self._registers.write(result), found.compute
        register = self._registers.named.get(result)
        wide = (
            register.itemsize * 8
            if register is not None and found.result < register.itemsize * 8 and found.result > 1
            else 0
        )

        def act(lanes: Lanes) -> None:
            bits = compute(*(each(lanes) for each in given))
            if wide and found.is_signed:
                bits = bits.view(f"i{found.result // 8}").astype(f"i{wide // 8}").view(unsigned(wide))
            write(lanes, bits)

        return act

    def _space(self, name: tuple[str, ...]) -> str:
        return next((part for part in name if part in _SPACES), "generic")

    def _move(self, instruction: Instruction) -> Act:
        what, *parts = instruction.name
        space, kind = self._space(instruction.name), parts[-1]
        count = next((int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)), 1)
        if set(parts) - {space, kind, f"v{count}", "volatile", "relaxed"}:
            raise NotImplementedError(instruction.line)
        size = BITS[kind] // 8
        value, place = instruction.operands if what == "ld" else reversed(instruction.operands)
        address, line = self._registers.address(place), instruction.line
        names = [name.strip() for name in value.strip("{}").split(",")]
        if len(names) != count:
            raise NotImplementedError(instruction.line)
        if what == "st":
            sources = [self._registers.read(name, BITS[kind]) for name in names]

            def store(lanes: Lanes) -> None:
                self._line = line
                values = np.stack([source(lanes) for source in sources], axis=1)
                at = address(lanes)
                self._memory(space, at).store(at, self._named(space, lanes), values)

            return store
        registers = [self._registers.named[name] for name in names]

        def load(lanes: Lanes) -> None:
            self._line = line
            at = address(lanes)
            if space == "param" or (space == "generic" and at[0] >> np.uint64(60) == 1):
                found = self._given(at, size, count)
            else:
                found = self._memory(space, at).load(at, self._named(space, lanes), size, count)
            for i, register in enumerate(registers):
                column = found[:, i]
                if kind[0] == "s":
                    column = column.view(f"i{size}").astype(f"i{register.itemsize}").view(register.dtype)
                register[lanes] = column

        return load

    def _given(self, addresses: NDArray[np.uint64], size: int, count: int) -> Bits:
        at = addresses.astype(np.int64) - PARAMETERS
        if ((at < 0) | (at + size * count > len(self._parameters)) | (at % (size * count) != 0)).any():
            raise Fault(f"{size * count} bytes of parameters at {at[0]} of {len(self._parameters)}")
        places = at[:, np.newaxis] + np.arange(size * count)
        return self._parameters[places].view(f"u{size}")

    def _memory(self, space: str, addresses: NDArray[np.uint64]) -> Any:
        if space == "generic":
            if (addresses >> np.uint64(61) == 1).all():
                return self._local
            raise NotImplementedError(f"generic address {addresses[0]:#x}")
        return {"global": self._global, "shared": self._shared, "local": self._local}[space]

    def _named(self, space: str, lanes: Lanes) -> Lanes:
        """Return the threads by the numbers that a memory knows: of the launch, or of these blocks."""
        return lanes + self._thread if space == "global" else lanes

    def _atomic(self, instruction: Instruction) -> Act:
        _, space, how, kind = instruction.name
        if kind[0] != "u":
            raise NotImplementedError(instruction.line)
        before, place, value = instruction.operands
        address, source, write = (
            self._registers.address(place),
            self._registers.read(value, BITS[kind]),
            self._registers.write(before),
        )

        def act(lanes: Lanes) -> None:
            self._line = instruction.line
            at = address(lanes)
            write(lanes, self._memory(space, at).update(at, self._named(space, lanes), source(lanes), _ATOMICS[how]))

        return act

    def _copy(self, instruction: Instruction) -> Act:
        name = ".".join(instruction.name)
        if name == "cp.async.wait_all":
            return lambda lanes: self._shared.finish_copies(self._global, lanes, self._thread)
        if name != "cp.async.cg.shared.global" or instruction.operands[2:] != ("16",):
            raise NotImplementedError(instruction.line)
        to, source = map(self._registers.address, instruction.operands[:2])

        def act(lanes: Lanes) -> None:
            self._line = instruction.line
            self._shared.start_copy(to(lanes), source(lanes), lanes)

        return act

    # --- where threads go ---

    def _end(self, last: Instruction | None, following: int) -> Callable[[Lanes], dict[int, Lanes]]:
        if last is None:
            return lambda lanes: {following: lanes}
        if last.name[0] == "bar":
            if (last.name, last.operands, last.predicate) != (("bar", "sync"), ("0",), None):
                raise NotImplementedError(last.line)
            return lambda lanes: {following: lanes}
        target = self._kernel.labels[last.operands[0]] if last.name[0] == "bra" else None
        if last.predicate is None:
            return lambda lanes: {} if target is None else {target: lanes}
        register, wanted = self._registers.named[last.predicate.register], last.predicate.wanted

        def branch(lanes: Lanes) -> dict[int, Lanes]:
            taken = register[lanes] == wanted
            parts = {following: lanes[~taken], **({} if target is None else {target: lanes[taken]})}
            return {number: some for number, some in parts.items() if some.size}

        return branch
