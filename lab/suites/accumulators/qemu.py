"""QEMU's Arm processor: BFDOT and BFMMLA, in a program of fifty instructions, written out word by word."""

from __future__ import annotations

import struct
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from golden.formats import BF16, FloatFormat
from lab.suites.accumulators.cases import Cases

__all__ = ["QEMU_PRESETS", "Qemu"]

QEMU_PRESETS = {"arm_bfdot": (BF16,), "arm_bfdot_ebf16": (BF16,)}
#: The control register: FPCR.EBF, and all else 0, so that it rounds to nearest even and flushes nothing.
_CONTROL = {"arm_bfdot": 0, "arm_bfdot_ebf16": 1 << 13}
#: The instruction on v0 (sums), v1 and v2.
_INSTRUCTIONS = {"BFDOT": 0x6E42FC20, "BFMMLA": 0x6E42EC20}
_RECORD, _BUFFER = 48, 49152
#: The exit status of the program if the control register does not keep its value.
_NO_SUCH_CONTROL = 3
# It sets the control register, reads records of v1, v2 and v0 until the buffer is full or the input ends, computes v0
# of each, and writes all of them back.
_PROGRAM = """
CONTROL d51b4409 d53b440a                    mov x9, control; msr fpcr, x9; mrs x10, fpcr
eb0a013f 54000080                            cmp x9, x10; b.eq start
d2800060 d2800ba8 d4000001                   mov x0, 3; mov x8, 93; svc 0; start:
10000513 d2800014                            adr x19, buffer; mov x20, 0
d2800000 8b140261 d2980002 cb140042          read: mov x0, 0; add x1, x19, x20; mov x2, 49152; sub x2, x2, x20
d28007e8 d4000001 f100001f 540000ad          mov x8, 63; svc 0; cmp x0, 0; b.le ended
8b000294 d2980009 eb09029f 54fffeab          add x20, x20, x0; mov x9, 49152; cmp x20, x9; b.lt read
b40002f4 d2800015                            ended: cbz x20, exit; mov x21, 0
8b150261 ad400821 3dc00820 INSTRUCTION       next: add x1, x19, x21; ldp q1, q2, [x1]; ldr q0, [x1, 32]
3d800820 9100c2b5 eb1402bf 54ffff2b          str q0, [x1, 32]; add x21, x21, 48; cmp x21, x20; b.lt next
d2800016                                     mov x22, 0
d2800020 8b160261 cb160282 d2800808          write: mov x0, 1; add x1, x19, x22; sub x2, x20, x22; mov x8, 64
d4000001 f100001f 540000cd 8b0002d6          svc 0; cmp x0, 0; b.le exit; add x22, x22, x0
eb1402df 54fffeeb d2800014 17ffffde          cmp x22, x20; b.lt write; mov x20, 0; b read
d2800000 d2800ba8 d4000001                   exit: mov x0, 0; mov x8, 93; svc 0; the buffer follows
"""
_LOADED_AT, _HEADERS = 0x400000, 120


def _executable(instruction: int, control: int) -> bytes:
    """Return an ELF file with one segment, for Linux on 64-bit Arm."""
    words = [word for line in _PROGRAM.strip().splitlines() for word in line[:45].split() if not word.endswith(":")]
    chosen = {"INSTRUCTION": instruction, "CONTROL": 0xD2800009 | control << 5}
    code = struct.pack(f"<{len(words)}I", *(chosen.get(word) or int(word, 16) for word in words))
    size = _HEADERS + len(code)
    start = _LOADED_AT + _HEADERS
    magic = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = magic + struct.pack("<2HI3QI6H", 2, 183, 1, start, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<2I6Q", 1, 7, 0, _LOADED_AT, _LOADED_AT, size, size + _BUFFER, 4096)
    return header + segment + code


class Qemu:
    """Sums by both instructions, which must agree."""

    m, k, n = 128, 8, 128

    def __init__(self, emulator: Path, name: str, fmt: FloatFormat) -> None:
        if name not in QEMU_PRESETS or fmt not in QEMU_PRESETS[name]:
            raise ValueError(f"name, fmt: got {name}, {fmt}, must be of {QEMU_PRESETS}")
        if not emulator.is_file():
            raise FileNotFoundError(f"{emulator}: is no file, must be qemu-aarch64 of version 6.1 or later")
        self._emulator, self._control = emulator, _CONTROL[name]

    def results(self, cases: Cases) -> NDArray[np.uint32]:
        """Return the codes in float32 of totals to which the products were added."""
        a, b = cases.a.reshape(self.m, -1, 4), cases.b.T.reshape(self.n, -1, 4)
        by_dot = by_matrix = cases.totals
        for at in range(a.shape[1]):
            quads = np.broadcast_arrays(a[:, np.newaxis, at], b[np.newaxis, :, at])
            for pair in (slice(0, 2), slice(2, 4)):
                x, y = (each[..., pair].reshape(-1, 8) for each in quads)
                by_dot = self._run("BFDOT", x, y, by_dot.reshape(-1, 4)).reshape(self.m, self.n)
            # Two rows times two columns at a time.
            halves = self.m // 2, self.n // 2, 8
            x = np.broadcast_to(a[:, at].reshape(-1, 1, 8), halves).reshape(-1, 8)
            y = np.broadcast_to(b[:, at].reshape(1, -1, 8), halves).reshape(-1, 8)
            totals = by_matrix.reshape(self.m // 2, 2, self.n // 2, 2).swapaxes(1, 2)
            made = self._run("BFMMLA", x, y, totals.reshape(-1, 4))
            by_matrix = made.reshape(totals.shape).swapaxes(1, 2).reshape(self.m, self.n)
        if (by_dot != by_matrix).any():
            raise RuntimeError("BFDOT and BFMMLA differ")
        return by_dot

    def _run(
        self, instruction: str, x: NDArray[np.uint16], y: NDArray[np.uint16], totals: NDArray[np.uint32]
    ) -> NDArray[np.uint32]:
        records = np.concatenate([part.astype(part.dtype, "C").view(np.uint32) for part in (x, y, totals)], axis=1)
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "sums"
            program.write_bytes(_executable(_INSTRUCTIONS[instruction], self._control))
            program.chmod(0o700)
            command = [str(self._emulator), "-cpu", "max", str(program)]
            done = subprocess.run(command, input=records.tobytes(), capture_output=True, check=False)
        if done.returncode == _NO_SUCH_CONTROL:
            raise RuntimeError(f"{self._emulator}: has no FPCR.EBF, must be qemu-aarch64 of version 9.2 or later")
        if done.returncode or len(done.stdout) != records.nbytes:
            raise RuntimeError(f"{' '.join(command)} failed: {done.stderr.decode(errors='replace').strip()}")
        return np.frombuffer(done.stdout, np.uint32).reshape(records.shape)[:, _RECORD // 4 - 4 :]
