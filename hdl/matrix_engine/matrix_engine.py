# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The matrix engine: products of matrices from memory to memory."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth import C, Cat, ClockDomain, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.cores.bundle import Bundle
from hdl.cores.clearing import cleared
from hdl.cores.specials import classify
from hdl.cores.words import choose, named
from hdl.matrix.matrix_mac import MatrixMac
from hdl.matrix.ports import matrix_result_layout
from hdl.matrix_engine.checker import Checker
from hdl.matrix_engine.control import ControlRegisters, engine_axi_lite_ports
from hdl.matrix_engine.loader import Loader
from hdl.matrix_engine.panel import Panel
from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.ports import axi_notes, axi_ports
from hdl.matrix_engine.reader import Reader
from hdl.matrix_engine.registers import Initial
from hdl.matrix_engine.run import Run
from hdl.matrix_engine.sequencer import Sequencer
from hdl.matrix_engine.tiler import Tiler
from hdl.matrix_engine.writer import Writer
from hdl.parameters import built_from, documented

__all__ = ["MatrixEngine", "empty_result"]

#: AXI4: bursts of consecutive words; normal memory, not cached; data, not secure, not privileged.
_INCREMENTING, _NORMAL = 1, 0b0011


@documented(EngineParameters)
class MatrixEngine(wiring.Component):
    """Multiply matrices from memory to memory, D = C + A B, bit for bit as `golden.matmul` (NUMERICS section 5).

    ::

        s_axil -> ControlRegisters -> queue -> Checker -> Run -> interrupt
                                                           | command
                .------------------------------------------'
                v     lines             words            groups
              Tiler ------> Reader --> m_axi_r -> Loader ------> Panel A, Panel B      two halves of block RAM:
                | |         m_axi_ar              to 16 bits       |         |         one is loaded, one computed
                | '-- slices -------> Sequencer: tile, k --------> a[rows]   b[columns]
                |                                                  '-> MatrixMac <-'
                |                                                          | rows of tiles
                '---- blocks of D -----------------------------> Writer <--'
                                                                 m_axi_aw, m_axi_w, m_axi_b

    D is computed in blocks of `registers` tiles, which take turns in the array, so that a tile's next product comes
    when its last one is done. K is cut into slices of `depth` products; a slice of A (the rows of the block) and one of
    B (its columns) lie in block RAM while the next ones are loaded.

    A block's rows of C form a slice ahead of the others. They pass through the panel of B, float32 in two halves, and
    each is loaded into its row of lanes (`hdl.MatrixMac`). With K = 0 they go past the array. An
    engine without `initial` refuses C.

    Its registers and the protocol of a command are described in `hdl.matrix_engine.registers`.

    Reads fetch whole words of the bus, each of which holds at least one element of A, B or C. Writes have strobes, so
    that every byte outside of D keeps its value.

    Attributes
    ----------
    unit : MatrixMac
        The array.
    latency : int
        Cycles from a beat of the array to its row of results, as in `hdl.MatrixMac`.
    aclk, aresetn : in
        Clock; synchronous reset, active low.
    s_axil_awaddr, ..., s_axil_rready
        AXI4-Lite subordinate of 32 data bits.
    m_axi_awid, ..., m_axi_rready
        AXI4 manager of `bus_width` data bits. All identifiers are 0.
    interrupt : out
        1 while it is enabled and a result waits.

    Raises
    ------
    TypeError, ValueError
        Naming the parameter, what was given and what is allowed.
    """

    #: Comments in the generated Verilog for ports that are not structs.
    port_notes: ClassVar[dict[str, str]] = {
        "aclk": "clock, rising edge",
        "aresetn": "synchronous reset, active low",
        "interrupt": "a result waits in RESULT",
        **{f"{prefix}_{name}": note for prefix in ("s_axil", "m_axi") for name, note in axi_notes().items()},
    }

    @built_from(EngineParameters)
    def __init__(self, parameters: EngineParameters) -> None:
        self.unit = MatrixMac(**parameters.array)
        self.latency, self.accumulate_latency = self.unit.latency, self.unit.accumulate_latency
        super().__init__(
            {
                "aclk": In(1),
                "aresetn": In(1),
                "interrupt": Out(1),
                **{f"s_axil_{name}": port for name, port in engine_axi_lite_ports().items()},
                **{f"m_axi_{name}": port for name, port in axi_ports(parameters).items()},
            }
        )
        self.registers_part = ControlRegisters(parameters)
        self.checker, self.run = Checker(parameters), Run(parameters)
        self.tiler, self.reader, self.loader = Tiler(parameters), Reader(parameters), Loader(parameters)
        self.a_panel = Panel(parameters, parameters.rows, parameters.tile_rows)
        has_uppers = parameters.initial and parameters.has_fp32
        self.b_panel = Panel(parameters, parameters.columns, parameters.tile_columns, has_uppers=has_uppers)
        self.sequencer = Sequencer(parameters)
        self.writer = Writer(parameters, matrix_result_layout(self.unit.parameters))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.sync = sync = ClockDomain()
        m.d.comb += [sync.clk.eq(self.aclk), sync.rst.eq(~self.aresetn)]
        m.submodules.registers, m.submodules.run = registers, run = self.registers_part, self.run
        # The parts that work on a command: an end before its time clears them.
        in_command = cleared(m, sync, run.clear)
        for name in ("tiler", "reader", "loader", "a_panel", "b_panel", "sequencer", "unit", "writer"):
            m.submodules[name] = in_command(getattr(self, name))
        m.submodules.checker = ResetInserter(run.drops)(self.checker)
        for name, port in engine_axi_lite_ports().items():
            outside, inside = getattr(self, f"s_axil_{name}"), getattr(registers, name)
            m.d.comb += inside.eq(outside) if port.flow is In else outside.eq(inside)
        m.d.comb += self.interrupt.eq(registers.interrupt)
        self._commands(m)
        self._loading(m)
        self._writing(m)
        self._computing(m)
        self._constants(m)
        return m

    def _commands(self, m: Module) -> None:
        registers, run, checker, tiler = self.registers_part, self.run, self.checker, self.tiler
        wiring.connect(m, checker.o, run.checked)
        m.d.comb += [
            run.submitted.eq(registers.submit),
            run.submission.eq(registers.command),
            checker.i.payload.eq(run.waiting.payload),
            checker.i.valid.eq(run.waiting.valid),
            run.waiting.ready.eq(checker.i.ready),
            run.abort.eq(registers.abort),
            run.reset_all.eq(registers.reset_all),
            run.clear_counters.eq(registers.clear_counters),
            run.pop.eq(registers.pop),
            registers.can_submit.eq(run.can_submit),
            registers.busy.eq(run.busy),
            registers.queued.eq(run.queued),
            registers.results.eq(run.results),
            registers.result.eq(run.result),
            registers.has_result.eq(run.has_result),
            registers.counters.eq(run.counters),
            registers.clear.eq(run.clear_registers),
            tiler.command.eq(run.command.command),
            tiler.outer_shift.eq(Mux(run.command.is_wide, 2, 1)),
            tiler.start.eq(run.start),
        ]

    def _loading(self, m: Module) -> None:
        run, tiler, reader, loader = self.run, self.tiler, self.reader, self.loader
        wiring.connect(m, tiler.lines, reader.lines)
        wiring.connect(m, reader.to_read, loader.to_read)
        accepts = Signal()
        m.d.comb += [
            self.m_axi_araddr.eq(reader.address),
            self.m_axi_arlen.eq(reader.length),
            self.m_axi_arvalid.eq(reader.valid),
            reader.ready.eq(self.m_axi_arready),
            loader.words.payload.eq(self.m_axi_rdata),
            loader.words.valid.eq(self.m_axi_rvalid & ~run.stop),
            self.m_axi_rready.eq(loader.words.ready | run.stop),
            accepts.eq(self.m_axi_rvalid & self.m_axi_rready),
            reader.ended.eq(accepts & self.m_axi_rlast),
            reader.stop.eq(run.stop),
            run.read_fails.eq(accepts & self.m_axi_rresp[1]),
            loader.format.eq(run.command.format),
        ]
        is_b = loader.line.is_b
        for panel, chosen in ((self.a_panel, ~is_b), (self.b_panel, is_b)):
            m.d.comb += [
                panel.line.eq(loader.line),
                panel.group.eq(loader.group),
                panel.number.eq(loader.number),
                panel.valid.eq(loader.valid & chosen),
            ]
        m.d.comb += [
            loader.ready.eq(Mux(is_b, self.b_panel.ready, self.a_panel.ready)),
            tiler.loaded.eq(loader.valid & loader.ready & loader.ends & loader.line.ends),
        ]

    def _computing(self, m: Module) -> None:
        run, sequencer, array = self.run, self.sequencer, self.unit
        wiring.connect(m, self.tiler.slices, sequencer.slices)
        command, beat = run.command.command, array.i.payload
        for panel, tile, factors in (
            (self.a_panel, sequencer.tile_row, beat.a),
            (self.b_panel, sequencer.tile_column, beat.b),
        ):
            m.d.comb += [
                panel.half.eq(sequencer.half),
                panel.tile.eq(tile),
                panel.k.eq(sequencer.k),
                panel.enable.eq(sequencer.enable),
            ]
            for factor, code in zip(factors, panel.codes, strict=True):
                m.d.comb += factor.eq(Mux(sequencer.is_empty, 0, code))
        m.d.comb += [
            array.i.valid.eq(sequencer.valid),
            sequencer.ready.eq(array.i.ready),
            beat.format.eq(run.command.format),
            beat.level.eq(command.options.level),
            beat.register.eq(sequencer.register),
            beat.first.eq(sequencer.first),
            beat.last.eq(sequencer.last),
            array.chunk.eq(command.chunk),
        ]
        if self.parameters.initial:
            self._load(m)
        if "rounding" in beat.shape().members:
            m.d.comb += beat.rounding.eq(command.options.rounding)
        m.d.comb += [
            run.computes.eq(array.i.valid & array.i.ready),
            run.waits_for_operands.eq(~sequencer.valid & (~self.tiler.is_done | self.tiler.has_slices)),
            run.waits_for_array.eq(array.i.valid & ~array.i.ready),
            run.waits_for_bus.eq(self.writer.rows.valid & ~self.writer.rows.ready),
        ]
        if self.parameters.initial:
            m.d.comb += run.computes.eq(array.i.valid & array.i.ready & ~beat.loads)

    def _load(self, m: Module) -> None:
        """Load rows of C; without products they are the rows of results, and pass the array by."""
        parameters, command = self.parameters, self.run.command.command
        sequencer, beat = self.sequencer, self.unit.i.payload
        is_wide, passes = named(m, "totals_are_wide", command.options.level != 2), Signal()
        index = named(
            m, "total_format", Mux(is_wide, len(parameters.formats.accumulators) - 1, self.run.command.format)
        )
        rows, uppers = self.writer.rows, getattr(self.b_panel, "uppers", [C(0, 0)] * parameters.columns)
        m.d.comb += [
            passes.eq((command.k == 0) & (command.options.initial != Initial.NONE)),
            sequencer.is_row.eq(command.options.initial == Initial.ROW),
            sequencer.passes.eq(passes),
            self.b_panel.k.eq(sequencer.b_k),
            beat.loads.eq(sequencer.loads),
            beat.row.eq(sequencer.row),
        ]
        for column, (lower, upper) in enumerate(zip(self.b_panel.codes, uppers, strict=True)):
            m.d.comb += beat.initial[column].eq(Cat(lower, upper))
        with m.If(passes):
            m.d.comb += [
                self.unit.i.valid.eq(0),
                sequencer.ready.eq(rows.ready),
                rows.valid.eq(sequencer.valid),
            ]
            for column, code in enumerate(beat.initial):
                found = empty_result(m, parameters, index, code, command.options.d_converted)
                m.d.comb += rows.payload.result[column].eq(found.code)
                if parameters.flags:
                    m.d.comb += rows.payload.flags[column].eq(Cat(C(0, 4), found.invalid))

    def _writing(self, m: Module) -> None:
        run, tiler, writer, array = self.run, self.tiler, self.writer, self.unit
        wiring.connect(m, tiler.blocks, writer.blocks)
        wiring.connect(m, array.o, writer.rows)
        command = run.command
        answered = Signal()
        m.d.comb += [
            writer.row_stride.eq(command.command.d_row_stride),
            writer.is_wide.eq(command.is_wide),
            writer.converts.eq(command.converts),
            writer.source.eq(command.source),
            writer.destination.eq(command.command.options.d_format),
            self.m_axi_awaddr.eq(writer.address),
            self.m_axi_awlen.eq(writer.length),
            self.m_axi_awvalid.eq(writer.address_valid),
            writer.address_ready.eq(self.m_axi_awready),
            self.m_axi_wdata.eq(writer.data),
            self.m_axi_wstrb.eq(writer.strobes),
            self.m_axi_wlast.eq(writer.last),
            self.m_axi_wvalid.eq(writer.data_valid),
            writer.data_ready.eq(self.m_axi_wready),
            self.m_axi_bready.eq(1),
            answered.eq(self.m_axi_bvalid),
            writer.answered.eq(answered),
            writer.stop.eq(run.stop),
            run.write_fails.eq(answered & self.m_axi_bresp[1]),
            run.flags.eq(writer.flags | writer.widths.flags),
            run.is_done.eq(tiler.is_done & writer.is_idle),
            run.is_quiet.eq(self.reader.is_idle & writer.is_quiet),
        ]

    def _constants(self, m: Module) -> None:
        size = (self.bus_width // 8).bit_length() - 1
        fixed = {"id": 0, "size": size, "burst": _INCREMENTING, "lock": 0, "cache": _NORMAL, "prot": 0, "qos": 0}
        for channel in ("aw", "ar"):
            for name, value in fixed.items():
                port: Any = getattr(self, f"m_axi_{channel}{name}")
                m.d.comb += port.eq(C(value, len(port)))


def empty_result(m: Module, parameters: EngineParameters, index: Value, code: Value, is_converted: Value) -> Bundle:
    """Return the result of an empty reduction: its initial value, where a NaN keeps all its bits.

    A conversion of the result makes the NaN of its format of every NaN. That is done here, so that the converters,
    which may widen first, see no signalling one.

    Parameters
    ----------
    m : Module
    parameters : EngineParameters
    index : Value
        Which of the accumulators' formats the code has.
    code : Value
    is_converted : Value
        The command converts results, be it to the format that they have.

    Returns
    -------
    Bundle
        ``code``, and ``invalid``: the conversion meets a signalling NaN.
    """
    codes, signals = [], []
    for fmt in parameters.formats.accumulators:
        own = code[: fmt.width]
        its_class = classify(fmt, own)
        if parameters.formats.flushes:
            is_zero = ~own[fmt.fraction_bits : fmt.width - 1].any()
            own = Mux(is_zero, own & fmt.sign_mask, own)
        codes.append(Mux(is_converted & its_class.is_nan, fmt.nan, own))
        signals.append(is_converted & its_class.is_signalling)
    return Bundle(
        code=named(m, "empty_result", choose(index, codes)), invalid=named(m, "is_invalid", choose(index, signals))
    )
