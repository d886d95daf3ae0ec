# amaranth: UnusedElaboratable=no
# A part is created together with its unit, which may never be elaborated.
"""The queue of commands, the command that runs, and how each one ends."""

from __future__ import annotations

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.matrix_engine.control import COUNTERS, counters_layout, result_layout
from hdl.matrix_engine.parameters import EngineParameters
from hdl.matrix_engine.ports import checked_layout, command_layout
from hdl.matrix_engine.registers import QUEUE_DEPTH, RESULT_DEPTH, EngineError
from hdl.queue import Queue

__all__ = ["Run"]


class Run(wiring.Component):
    """Run one command after the other, and end each with one result.

    ::

        submission -> queue -> (Checker) -> checked -> IDLE --start--> RUN --is_done-----------> END -> results
                                                         |              | failure, abort, reset   ^
                                                         |              v                         |
                                                         |            STOP: wait for the bus --> CLEAR
                                                         '--- refused, nothing to do -------------^

    The checker holds a command at the head of the queue until it is taken, so that the next one is checked meanwhile.

    Ports
    -----
    submitted, submission, can_submit
        A command enters the queue.
    waiting : stream of command_layout, out
        To the checker.
    checked : stream of checked_layout, in
        From the checker.
    command : checked_layout, out
        The command that runs.
    start : out
    is_done : in
        Everything was read, computed, written and answered.
    is_quiet : in
        No burst is on its way.
    read_fails, write_fails : in
        The bus answers with an error.
    stop : out
        Begin no further burst.
    clear : out
        Forget all work.
    drops : out
        Forget the command that is being checked.
    flags : in
        Flags of results; those of all cycles are collected.
    abort, reset_all, clear_counters, pop : in
    busy, queued, results, result, has_result, counters, clear_registers : out
        For the registers.
    computes, waits_for_operands, waits_for_array, waits_for_bus : in
        Events that are counted.
    """

    def __init__(self, parameters: EngineParameters) -> None:
        self.parameters = parameters
        events = ("computes", "waits_for_operands", "waits_for_array", "waits_for_bus")
        super().__init__(
            {
                "submitted": In(1),
                "submission": In(command_layout()),
                "can_submit": Out(1),
                "waiting": Out(stream.Signature(command_layout())),
                "checked": In(stream.Signature(checked_layout(parameters))),
                "command": Out(checked_layout(parameters)),
                "start": Out(1),
                **{
                    name: In(1)
                    for name in ("is_done", "is_quiet", "read_fails", "write_fails", "abort", "reset_all", "pop")
                },
                "clear_counters": In(1),
                "stop": Out(1),
                "clear": Out(1),
                "drops": Out(1),
                "flags": In(5),
                "busy": Out(1),
                "queued": Out(range(QUEUE_DEPTH + 1)),
                "results": Out(range(RESULT_DEPTH + 1)),
                "result": Out(result_layout()),
                "has_result": Out(1),
                "counters": Out(counters_layout()),
                "clear_registers": Out(1),
                **{name: In(1) for name in events},
            }
        )
        self.queue = Queue(command_layout(), QUEUE_DEPTH)
        self.answers = Queue(result_layout(), RESULT_DEPTH)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue, m.submodules.answers = queue, answers = self.queue, self.answers
        aborts, resets = Signal(), Signal()  # asked for, and not done
        runs, ends, answer = Signal(), Signal(), Signal(result_layout())
        error, flags = Signal(8), Signal(5)
        is_ending = aborts | resets
        m.d.comb += [
            queue.w_data.eq(self.submission),
            queue.w_en.eq(self.submitted),
            self.can_submit.eq((queue.level != queue.depth) & ~is_ending),
            self.queued.eq(queue.level),
            self.waiting.payload.eq(queue.r_data),
            self.waiting.valid.eq(queue.r_rdy & ~is_ending),
            answers.w_data.eq(answer),
            answers.w_en.eq(ends),
            self.results.eq(answers.level),
            self.result.eq(answers.r_data),
            self.has_result.eq(answers.r_rdy),
            answers.r_en.eq(self.pop | self.clear_registers),
            self.drops.eq(is_ending),
        ]
        m.d.sync += [aborts.eq(aborts | self.abort), resets.eq(resets | self.reset_all)]
        has_place = answers.level != answers.depth
        failed = Signal(8)
        with m.If(self.read_fails):
            m.d.comb += failed.eq(EngineError.READ)
        with m.If(self.write_fails):
            m.d.comb += failed.eq(EngineError.WRITE)
        m.d.sync += flags.eq(flags | self.flags)
        drops_one = Signal()
        m.d.comb += queue.r_en.eq((self.waiting.ready & self.waiting.valid) | drops_one)

        self.error = error
        with m.FSM() as fsm:
            self.fsm = fsm
            with m.State("IDLE"):
                with m.If(is_ending):
                    m.next = "EMPTY"
                with m.Elif(has_place):
                    m.d.comb += self.checked.ready.eq(1)
                    m.d.sync += [
                        self.command.eq(self.checked.payload),
                        flags.eq(0),
                        error.eq(self.checked.payload.error),
                    ]
                    with m.If(self.checked.valid):
                        m.next = "START"
            with m.State("START"):
                m.next = "END"
                with m.If((error == 0) & ~self.command.is_void):
                    m.d.comb += self.start.eq(1)
                    m.next = "RUN"
            with m.State("RUN"):
                m.d.comb += runs.eq(1)
                with m.If(failed != 0):
                    m.d.sync += error.eq(failed)
                    m.next = "STOP"
                with m.Elif(is_ending):
                    m.d.sync += error.eq(EngineError.ABORTED)
                    m.next = "STOP"
                with m.Elif(self.is_done):
                    m.next = "END"
            with m.State("STOP"):
                m.d.comb += [runs.eq(1), self.stop.eq(1)]
                with m.If(self.is_quiet):
                    m.next = "CLEAR"
            with m.State("CLEAR"):
                m.d.comb += [runs.eq(1), self.stop.eq(1), self.clear.eq(1)]
                m.next = "END"
            with m.State("END"):
                m.d.comb += [
                    ends.eq(~resets),
                    answer.error.eq(error),
                    answer.tag.eq(self.command.command.tag),
                    answer.flags.eq(Mux(error == 0, flags, 0)),
                ]
                m.next = "IDLE"
            with m.State("EMPTY"):
                # The commands in the queue end, each with a result unless all is reset.
                with m.If(queue.r_rdy):
                    with m.If(resets | has_place):
                        m.d.comb += [
                            drops_one.eq(1),
                            ends.eq(~resets),
                            answer.error.eq(EngineError.ABORTED),
                            answer.tag.eq(queue.r_data.tag),
                        ]
                with m.Elif(resets & answers.r_rdy):
                    m.d.comb += self.clear_registers.eq(1)
                with m.Else():
                    m.d.comb += self.clear_registers.eq(resets)
                    m.d.sync += [aborts.eq(self.abort), resets.eq(self.reset_all)]
                    m.next = "IDLE"
            m.d.comb += self.busy.eq(~fsm.ongoing("IDLE") | is_ending | (queue.level != 0))

        events = (runs, self.computes, self.waits_for_operands, self.waits_for_array, self.waits_for_bus)
        for name, event in zip(COUNTERS, events, strict=True):
            counter = self.counters[name.lower()]
            m.d.sync += counter.eq(counter + (event & runs))
            with m.If(self.clear_counters | self.clear_registers):
                m.d.sync += counter.eq(0)
        return m
