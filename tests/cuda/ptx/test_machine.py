"""The machine runs threads that part and meet, and stops at what no kernel may do."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.cuda.ptx.machine import run
from tests.cuda.ptx.memory import Fault, GlobalMemory
from tests.cuda.ptx.program import kernels_of

#: %rd1 and %rd2 are the kernel's two addresses, %r1 is the thread's number, %rd3 and %rd4 its own places behind them.
KERNEL = """
.version 8.8
.visible .entry kernel(
	.param .align 8 .b8 kernel_param_0[16]
)
.maxntid 256, 1, 1
{
	.reg .pred 	%p<9>;
	.reg .b16 	%rs<9>;
	.reg .f32 	%f<9>;
	.reg .b32 	%r<19>;
	.reg .b64 	%rd<19>;
	.shared .align 16 .b8 rows[1040];
	.local .align 8 .b8 	own[16];

	ld.param.u64 	%rd1, [kernel_param_0];
	ld.param.u64 	%rd2, [kernel_param_0+8];
	mov.u32 	%r1, %tid.x;
	mul.wide.u32 	%rd9, %r1, 4;
	add.s64 	%rd3, %rd1, %rd9;
	add.s64 	%rd4, %rd2, %rd9;
	shl.b32 	%r2, %r1, 2;
	mov.u32 	%r3, rows;
	add.s32 	%r4, %r3, %r2;
	sub.s32 	%r5, 1020, %r2;
	add.s32 	%r5, %r3, %r5;
	BODY
	ret;

}
"""


def run_body(body: str, given: NDArray[np.uint32], blocks: int = 1) -> NDArray[np.uint32]:
    """Run a kernel of these instructions on an array of 256 words, and return the 256 of its result."""
    result = np.full(256, 7, np.uint32)
    kernel = kernels_of(KERNEL.replace("BODY", body))["kernel"]
    addresses = np.array([given.ctypes.data, result.ctypes.data], np.uint64)
    regions = [(array.ctypes.data, array.ctypes.data + array.nbytes) for array in (given, result)]
    run(kernel, blocks, addresses.tobytes(), GlobalMemory(regions))
    return result


@pytest.fixture
def numbers() -> NDArray[np.uint32]:
    return np.arange(256, dtype=np.uint32) * 3


LOAD, STORE = "ld.global.u32 %r10, [%rd3];", "st.global.u32 [%rd4], %r10;"
THROUGH_SHARED = f"{LOAD} st.shared.u32 [%r4], %r10; bar.sync 0; ld.shared.u32 %r10, [%r5]; {STORE}"


def test_machine_with_a_barrier_between_threads_turns_an_array(numbers: NDArray[np.uint32]) -> None:
    assert np.array_equal(run_body(THROUGH_SHARED, numbers), numbers[::-1])


def test_machine_whose_threads_part_in_a_loop_runs_each_to_its_end(numbers: NDArray[np.uint32]) -> None:
    """Thread i adds i numbers, of even ones twice: threads leave the loop and the branch in it one after the other."""
    body = (
        """
	mov.u32 %r10, 0;
	mov.u32 %r11, 0;
$head:
	setp.ge.u32 %p1, %r11, %r1;
	@%p1 bra $end;
	add.s32 %r10, %r10, %r11;
	and.b32 %r12, %r11, 1;
	setp.eq.s32 %p2, %r12, 0;
	@!%p2 bra $next;
	add.s32 %r10, %r10, %r11;
$next:
	add.s32 %r11, %r11, 1;
	bra.uni $head;
$end:
"""
        + STORE
    )
    wanted = [sum(range(i)) + sum(range(0, i, 2)) for i in range(256)]
    assert run_body(body, numbers).tolist() == wanted


def test_machine_adds_of_all_threads_arrive(numbers: NDArray[np.uint32]) -> None:
    body = f"ld.param.u64 %rd9, [kernel_param_0]; atom.global.add.u32 %r10, [%rd9], 2; {STORE}"
    assert sorted(run_body(body, numbers).tolist()) == list(range(0, 512, 2))
    assert numbers[0] == 512


def test_machine_moves_halves_of_words_and_signs(numbers: NDArray[np.uint32]) -> None:
    body = f"""{LOAD}
	mov.b32 {{%rs1, %rs2}}, %r10;
	mov.b32 %r10, {{%rs2, %rs1}};
	shr.s32 %r10, %r10, 40;
	{STORE}"""
    assert run_body(body, numbers << 6).tolist() == [0xFFFFFFFF if (i * 3 << 6) & 0x8000 else 0 for i in range(256)]


def test_machine_copies_that_were_waited_for_land(numbers: NDArray[np.uint32]) -> None:
    assert np.array_equal(run_body(COPY.format("cp.async.wait_all;", "bar.sync 0;"), numbers), numbers[::-1])


#: 64 threads copy 16 bytes each.
COPY = f"""setp.gt.u32 %p1, %r1, 63;
	@%p1 bra $after;
	shl.b32 %r6, %r1, 4;
	add.s32 %r6, %r3, %r6;
	cvt.u64.u32 %rd10, %r6;
	mul.wide.u32 %rd11, %r1, 16;
	add.s64 %rd11, %rd1, %rd11;
	cp.async.cg.shared.global [%r6], [%rd11], 16;
	{{}}
$after:
	{{}}
	ld.shared.u32 %r10, [%r5];
	{STORE}"""

FAULTS = {
    "no barrier between write and read": (
        THROUGH_SHARED.replace("bar.sync 0;", ""), "reads, without a barrier, what was written by thread"
    ),
    "no barrier between read and write": (
        f"{THROUGH_SHARED} st.shared.u32 [%r4], %r10;", "writes, without a barrier, what was read by thread"
    ),
    "two write the same shared word": ("st.shared.u32 [rows], %r1;", "writes at once with thread"),
    "shared memory that nobody wrote": ("ld.shared.u32 %r10, [%r4];", "reads shared memory that nobody wrote"),
    "behind the shared memory": ("st.shared.u32 [%r4+1020], %r1;", "of shared memory written at 2040 of 1040"),
    "not aligned shared memory": ("add.s32 %r4, %r4, 2; st.shared.u32 [%r4], %r1;", "not aligned"),
    "adding beside reading": (f"{THROUGH_SHARED} atom.shared.add.u32 %r11, [%r4], 1;", "adds, without a barrier, to"),
    "adding to what nobody wrote": ("atom.shared.add.u32 %r11, [%r4], 1;", "adds to shared memory that nobody wrote"),
    "a copy that nobody waits for": (COPY.format("", "bar.sync 0; ret;"), "ends before its copy has landed"),
    "a copy read on its way": (COPY.format("", "bar.sync 0;"), "while a copy is on its way, of thread 63"),
    "a copy without a barrier": (COPY.format("cp.async.wait_all;", ""), "without a barrier, what was written by"),
    "a barrier for some": ("setp.eq.s32 %p1, %r1, 9; @%p1 ret; bar.sync 0;", "that not all 256 threads reach: 255"),
    "two barriers": (
        "setp.eq.s32 %p1, %r1, 9; @%p1 bra $a; bar.sync 0; bra.uni $b;\n$a:\nbar.sync 0;\n$b:\n",
        "not all 256 threads reach"
    ),
    "behind an array": ("ld.global.u32 %r10, [%rd3+4];", "thread 255: 4 bytes at .*, which is not the launch"),
    "before an array": ("st.global.u32 [%rd3+-4], %r1;", "thread 0: 4 bytes at"),
    "at no address": ("mov.b64 %rd9, 0; ld.global.u32 %r10, [%rd9];", "thread 0: 4 bytes at 0x0, which is not"),
    "not aligned": ("ld.global.u32 %r10, [%rd1+2];", "4 bytes at 0x[0-9a-f]*, which is not aligned"),
    "two write the same word": ("st.global.u32 [%rd2], %r1;", "threads 0 and 255: one wrote what the other one used"),
    "one reads what another one writes": (
        "ld.global.u32 %r10, [%rd4]; xor.b32 %r11, %r2, 4; cvt.u64.u32 %rd9, %r11; add.s64 %rd9, %rd2, %rd9;"
        "st.global.u32 [%rd9], %r10;", "threads 0 and 1: one wrote what"
    ),
    "one reads what others add to": (
        f"atom.global.add.u32 %r11, [%rd2], 1; {LOAD.replace('rd3', 'rd4')}", "one wrote what the other one used"
    ),
    "behind the parameters": ("ld.param.u64 %rd9, [kernel_param_0+16];", "8 bytes of parameters at 16 of 16"),
    "behind the local memory": ("mov.b64 %rd9, own; st.local.u32 [%rd9+16], %r1;", "of local memory at 16 of 16"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_machine_whose_kernel_does_what_none_may_says_so(numbers: NDArray[np.uint32], fault: str) -> None:
    body, said = FAULTS[fault]
    with pytest.raises(Fault, match=said):
        run_body(body, numbers)


def test_machine_whose_blocks_write_the_same_says_so(numbers: NDArray[np.uint32]) -> None:
    with pytest.raises(Fault, match="threads 0 and 256: one wrote what the other one used"):
        run_body(THROUGH_SHARED, numbers, blocks=2)


def test_machine_of_other_parameters_says_how_many_bytes_they_have(numbers: NDArray[np.uint32]) -> None:
    kernel = kernels_of(KERNEL.replace("BODY", ""))["kernel"]
    with pytest.raises(Fault, match="kernel: 8 bytes of parameters, must be 16"):
        run(kernel, 1, bytes(8), GlobalMemory([]))


@pytest.mark.parametrize(
    "line",
    [
        "ex2.approx.f32 %f1, %f2;", "fma.rn.ftz.f32 %f1, %f2, %f3, %f4;", "add.rz.f32 %f1, %f2, %f3;",
        "mul.hi.s32 %r10, %r1, %r2;", "bar.sync 1;", "ld.global.nc.u32 %r10, [%rd3];", "mov.u32 %r10, %laneid;",
        "cp.async.ca.shared.global [%r4], [%rd3], 4;", "cvt.rzi.s32.f32 %r10, %f1;",
        "shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;",
    ],
)  # fmt: skip
def test_machine_stops_at_an_instruction_that_it_does_not_know(numbers: NDArray[np.uint32], line: str) -> None:
    with pytest.raises(NotImplementedError, match=r"^kernel: got .*, which this machine does not know yet; "):
        run_body(line, numbers)


@pytest.mark.parametrize("line", [".branchtargets a, b;", "what is this", ".reg .b32 twice; .reg .f32 twice;"])
def test_reader_stops_at_a_statement_that_it_does_not_know(line: str) -> None:
    with pytest.raises(ValueError, match=r"kernel: .*" + re.escape(line.split(";")[-2 if ";" in line else -1].strip())):
        kernels_of(KERNEL.replace("BODY", line))


def test_reader_of_an_entry_with_two_parameters_says_so() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        kernels_of(KERNEL.replace("[16]\n)", "[16], .param .u32 other\n)"))
