"""A double of the matrix engine behind the driver's transport: the registers' protocol, and golden's products."""

from __future__ import annotations

from collections import deque

import numpy as np

import golden
from golden import FP32, Reduction, Rounding, format_named
from hdl.engine import Region, TransportError
from hdl.matrix_engine import registers as table
from hdl.matrix_engine.registers import Access, EngineError, Initial, register_named

FORMAT_NAMES = {code: name for name, code in table.FORMAT_CODES.items()}


class Double:
    """An engine of 4 x 4 lanes. Results come after `delay` looks at ``RESULT``.

    Parameters
    ----------
    size, base : int
        Memory.
    features : dict
        Fields of ``FEATURES``, ``FORMATS`` and ``LIMITS`` that differ from those of a whole engine.
    fail : EngineError, optional
        How each command ends.
    """

    name = "double"

    def __init__(self, size=1 << 20, base=0x1000, delay=2, fail=None, hangs=False, **features):
        self.memory = Region(base, size)
        self.bytes = np.full(size, 0xA5, np.uint8)
        self.delay, self.fail, self.hangs = delay, fail, hangs
        self.commands, self.closed, self.resets = [], False, 0
        words = {each.name: each.reset or 0 for each in table.REGISTERS}
        formats = {"operands": 0x8007, "results": 0x8007} | pick(features, "operands", "results")
        words["SHAPE"] = register_named("SHAPE").word(rows=4, columns=4, tiles=4, bus_bytes=8)
        words["FORMATS"] = register_named("FORMATS").word(**formats)
        more = {"levels": 7, "roundings": 0b11111, "initial": 1, "flags": 1, "queue": 2, "results": 4}
        words["FEATURES"] = register_named("FEATURES").word(
            **more | pick(features, "levels", "roundings", "initial", "subnormals_flush")
        )
        limits = {"chunk_bits": 12, "size_bits": 20, "address_bits": 32}
        limits |= pick(features, *limits)
        words["LIMITS"] = register_named("LIMITS").word(**limits)
        words["ID"] = features.get("identity", words["ID"])
        assert not set(features) - {*formats, *more, *limits, "identity", "subnormals_flush"}
        self.words, self.results, self.looks = words, deque(), 0

    def read(self, address):
        register = at(address)
        if register is None:
            return 0
        if register.name == "RESULT":
            self.looks += 1
            if not self.results or self.hangs or self.looks % (self.delay + 1):
                return 0
            error, tag, flags = self.results[0]
            return register.word(error=error, tag=tag, flags=flags, valid=1)
        if register.access is Access.WRITE:
            return 0
        return self.words[register.name]

    def write(self, address, value):
        register = at(address)
        if register is None or register.access is Access.READ:
            raise TransportError(f"register {address:#x}: the bus answered with error 2")
        match register.name:
            case "SUBMIT":
                if len(self.results) > table.QUEUE_DEPTH:
                    raise TransportError("SUBMIT: the queue is full")
                self.results.append(self.run(value & 0xFF))
            case "RESULT":
                self.results.popleft()
            case "CONTROL":
                if register.fields_of(value)["reset"]:
                    self.resets += 1
                    self.results.clear()
                    self.words |= {each.name: 0 for each in table.REGISTERS if each.is_command}
                if register.fields_of(value)["clear_counters"]:
                    self.words["PRODUCTS"] = 0
            case name:
                self.words[name] = value

    def read_memory(self, address, length):
        begin = address - self.memory.base
        assert 0 <= begin <= begin + length <= self.memory.size, "outside the memory"
        return self.bytes[begin : begin + length].tobytes()

    def write_memory(self, address, content):
        begin = address - self.memory.base
        assert 0 <= begin <= begin + len(content) <= self.memory.size, "outside the memory"
        self.bytes[begin : begin + len(content)] = np.frombuffer(content, np.uint8)

    def wait(self, seconds):
        pass

    def close(self):
        self.closed = True

    def run(self, tag):
        """Return error, tag and flags of the command in the registers."""
        given = {each.name: self.words[each.name] for each in table.REGISTERS if each.is_command}
        options = register_named("OPTIONS").fields_of(given["OPTIONS"])
        self.commands.append(given | {"options": options, "tag": tag})
        error = self.fail if self.fail is not None else self.refusal(given, options)
        if error:
            return error, tag, 0
        self.words["PRODUCTS"] += 1
        self.words["CYCLES"] += 100
        operand = format_named(FORMAT_NAMES[options["format"]])
        chunk = given["CHUNK"] or None
        reduction = Reduction.for_level(options["level"], operand, chunk=chunk)
        m, n, k, batches = (given[name] for name in ("M", "N", "K", "BATCHES"))

        def operand_of(name, rows, columns):
            transposed, wide = options[f"{name.lower()}_transposed"], options[f"{name.lower()}_float32"]
            both = (columns, rows) if transposed else (rows, columns)
            found = self.view(name, given, batches, *both, np.uint32 if wide else np.uint16)
            codes = golden.convert(found, FP32, operand) if wide else found.copy()
            return np.swapaxes(codes, -1, -2) if transposed else codes

        a, b = operand_of("A", m, k), operand_of("B", k, n)
        outer = np.uint32 if reduction.outer == FP32 else np.uint16
        start = None
        if options["initial"]:
            start = self.view("C", given, batches, 1 if options["initial"] == Initial.ROW else m, n, outer).copy()
        out = format_named(FORMAT_NAMES[options["d_format"]]) if options["d_converted"] else None
        mode = Rounding(options["rounding"])
        arguments = {"operand": operand, "reduction": reduction, "initial": start, "out": out, "rounding": mode}
        codes = golden.matmul(a, b, backend="numpy", **arguments)
        self.view("D", given, batches, m, n, codes.dtype)[...] = codes
        return EngineError.NONE, tag, int(golden.Flag.INEXACT)

    def refusal(self, given, options):
        features = register_named("FEATURES").fields_of(self.words["FEATURES"])
        formats = register_named("FORMATS").fields_of(self.words["FORMATS"])
        limits = register_named("LIMITS").fields_of(self.words["LIMITS"])
        wide = options["a_float32"] or options["b_float32"]
        if not formats["operands"] >> options["format"] & 1 or (wide and not formats["operands"] >> 15):
            return EngineError.FORMAT
        if options["d_converted"] and not formats["results"] >> options["d_format"] & 1:
            return EngineError.FORMAT
        if not features["levels"] >> options["level"] & 1:
            return EngineError.LEVEL
        if not features["roundings"] >> options["rounding"] & 1:
            return EngineError.ROUNDING
        if given["CHUNK"] >> limits["chunk_bits"]:
            return EngineError.CHUNK
        if any(given[name] >> limits["size_bits"] for name in ("M", "N", "K", "BATCHES")):
            return EngineError.SIZE
        if options["initial"] and not features["initial"]:
            return EngineError.INITIAL
        return EngineError.NONE

    def view(self, name, given, batches, rows, columns, dtype):
        """Return a matrix of all batches, in place."""
        address = given[f"{name}_ADDRESS"] | given[f"{name}_ADDRESS_HIGH"] << 32
        size, row, batch = np.dtype(dtype).itemsize, given[f"{name}_ROW_STRIDE"], given[f"{name}_BATCH_STRIDE"]
        assert address % size == row % size == batch % size == 0, "misaligned"
        begin = address - self.memory.base
        last = (batches - 1) * batch + (rows - 1) * row + columns * size
        if rows and columns:
            assert begin >= 0, f"{name} outside the memory"
            assert begin + last <= self.memory.size, f"{name} outside the memory"
        else:
            return np.zeros((batches, rows, columns), dtype)
        raw = self.bytes[begin:]
        return np.ndarray((batches, rows, columns), dtype, raw, 0, (batch, row, size))


def pick(features, *names):
    return {name: features[name] for name in names if name in features}


def at(address):
    return next((each for each in table.REGISTERS if each.address == address), None)
