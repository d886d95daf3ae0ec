"""The comparison of golden.accumulators with outside judges: this processor's instructions, and faults it finds."""

from dataclasses import replace

import numpy as np
import pytest

import golden
from golden import BF16, accumulators
from lab.suites.accumulators.__main__ import compare, main, run_golden
from lab.suites.accumulators.cases import draw
from lab.suites.accumulators.faults import faults_of
from lab.suites.accumulators.judges import PROCESSOR_PRESETS, Processor, is_available
from lab.suites.accumulators.qemu import Qemu


class Golden:
    """A judge that is golden itself, or golden with a fault."""

    m, k, n = 16, 32, 16

    def __init__(self, rule):
        self.rule = rule

    def results(self, cases):
        return golden.matmul(cases.a, cases.b, operand=BF16, reduction=self.rule, initial=cases.totals)


@pytest.mark.parametrize("name", PROCESSOR_PRESETS)
def test_rule_of_x86_has_the_bits_of_this_processor(name):
    if not is_available(name):
        pytest.skip(f"this processor has no {name.removeprefix('x86_').upper()}, or there is no compiler")
    compared, wrong, shown = compare(Processor(name), name, BF16, 20_000, seed=1)
    assert compared >= 20_000
    assert wrong == 0, shown
    # The same comparison finds every fault.
    for fault, wrong_rule in faults_of(accumulators[name]):
        if fault in ("another NaN", "flushing of another kind"):  # neither is compared, or drawn often
            continue

        def run(cases, fmt, preset, rule=wrong_rule):
            return run_golden(cases, fmt, rule)

        assert compare(Processor(name), name, BF16, 20_000, seed=1, run=run)[1] > 0, fault


def test_comparison_counts_and_shows_differences():
    rule = accumulators["nvidia_hopper"]
    assert compare(Golden(rule), "nvidia_hopper", BF16, 2000, seed=0)[1:] == (0, [])
    wrong = replace(rule, join=replace(rule.join, fraction_bits=24))
    compared, count, shown = compare(Golden(wrong), "nvidia_hopper", BF16, 2000, seed=0)
    assert compared == 2048
    assert count > 20
    assert len(shown) == 10
    assert shown[0].startswith("nvidia_hopper, bfloat16: ")
    # The comparison takes any NaN for AMD, but every bit of a NaN counts for NVIDIA.
    for name, differs in (("nvidia_hopper", True), ("amd_cdna3", False)):
        other = replace(accumulators[name], nan=0x7FC00001)
        assert (compare(Golden(other), name, BF16, 6000, seed=0)[1] > 0) is differs


def test_cases_reach_both_ends_of_the_range_zeros_and_specials():
    rng = np.random.default_rng(0)
    seen = [golden.decode(draw(rng, BF16, 16, 16, 16).a, BF16) for _ in range(60)]
    values = np.abs(np.array(seen))
    with np.errstate(invalid="ignore"):
        assert np.isnan(values).any()
        assert np.isinf(values).any()
        assert (values == 0).any()
        assert ((values > 0) & (values < 2.0**-126)).any()
        assert ((values > 2.0**126) & np.isfinite(values)).any()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["mma-sim"], "argument checkout: got none"),
        (["spike", "."], "has no riscv/zvbdot.h, must be a checkout of riscv-isa-sim"),
        (["mma-sim", "."], "has no folder mmasim, must be a checkout of MMA-Sim"),
        (["qemu", "no-such-file"], "no-such-file: is no file, must be qemu-aarch64"),
        (["processor", "--preset", "arm_bfdot"], "argument --preset: got arm_bfdot, must be one of x86_vdpbf16ps"),
        (["processor", "--cases", "0"], "argument --cases: got 0"),
    ],
)
def test_command_line_says_what_is_missing(arguments, said, capsys):
    try:
        status = main(arguments)
    except SystemExit as stopped:
        status = stopped.code
    assert status == 2
    assert said in capsys.readouterr().err


def test_qemu_without_the_control_bit_of_ebf16_ends_the_command_with_what_it_takes(tmp_path, capsys):
    emulator = tmp_path / "qemu-aarch64"
    emulator.write_text("#!/bin/sh\nexit 3\n")
    emulator.chmod(0o700)
    assert main(["qemu", str(emulator), "--preset", "arm_bfdot_ebf16", "--cases", "1"]) == 2
    assert capsys.readouterr().err == (
        f"lab.suites.accumulators: {emulator}: has no FPCR.EBF, must be qemu-aarch64 of version 9.2 or later\n"
    )


def test_qemu_is_given_a_program_that_sets_the_control_bit_of_ebf16_alone(tmp_path):
    emulator = tmp_path / "qemu-aarch64"
    emulator.write_text(f'#!/bin/sh\ncp "$3" {tmp_path}/program\nexit 3\n')
    emulator.chmod(0o700)
    for name, first in (("arm_bfdot", 0xD2800009), ("arm_bfdot_ebf16", 0xD2840009)):
        with pytest.raises(RuntimeError, match=r"has no FPCR\.EBF"):
            compare(Qemu(emulator, name, BF16), name, BF16, 1, seed=0)
        program = (tmp_path / "program").read_bytes()
        assert int.from_bytes(program[120:124], "little") == first  # mov x9, the register's value; msr fpcr, x9
        assert int.from_bytes(program[124:128], "little") == 0xD51B4409
