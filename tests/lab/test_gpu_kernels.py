"""What compilers make of the kernels for cards: registers, spills and instructions, as the results page has them."""

from fractions import Fraction

import pytest

from golden import Rounding
from golden.cuda.compiling import Resources
from golden.cuda.scales import Steps
from lab.gpu import kernels
from lab.gpu.kernels import COUNTED, count, disassembler, in_listing

LISTING = """
.text.probe:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   FFMA.RM R16, R17, R24, R25 ;
        /*0020*/                   LOP3.LUT P1, RZ, R16, 0x1, RZ, 0xc0, !PT ;
        /*0030*/              @!P1 FFMA.RP R16, R17.reuse, R24, R25 ;
                              @!UP0 UIADD3 UR4, UR4, 0x1, URZ ;
                                   EXIT ;
.L_1:
                                   BRA `(.L_1);
                                   NOP;
"""
SCALED = Steps(Rounding.NEAREST_EVEN, "scaled", "single")
TAKEN = {
    (None, 75): {"pack": Resources(32, 0, 0, 17536)},
    (SCALED, 75): {"multiply_128": Resources(185, 0, 0, 32768), "multiply_64": Resources(80, 36, 8, 16384)},
    (SCALED, 90): {"multiply_128": Resources(168, 0, 0, 32768), "multiply_64": Resources(80, 0, 0, 16384)},
}


def test_instructions_of_a_listing_are_counted_with_and_without_predicates():
    assert in_listing(LISTING) == {"MOV": 1, "FFMA": 2, "LOP3": 1, "UIADD3": 1}


def test_table_of_resources_has_spilled_bytes_in_brackets_and_gaps_where_nothing_was_compiled():
    table = kernels.resources(TAKEN)
    assert table.columns == ("variant", "kernels", "bytes shared", "sm_75", "sm_90")
    assert list(table.rows) == [
        ("`common`", "`pack`", "17536", "32", ""),
        (
            "`nearest_even-scaled-single`",
            "`multiply_128`, `multiply_64`",
            "32768 · 16384",
            "185 · 80 (36)",
            "168 · 80",
        ),
    ]


def test_conclusion_names_the_kernels_that_spill():
    assert kernels.conclusion(TAKEN) == (
        "5 kernels in 3 cubins; 1 of them keep registers in memory: multiply_64 of nearest_even-scaled-single for "
        "sm_75 (36 bytes)."
    )
    assert kernels.conclusion({(None, 75): TAKEN[None, 75]}).endswith("none of them keep registers in memory.")


def test_table_of_instructions_has_their_sum_and_the_names_on_the_last_architecture():
    counts = {
        75: {step: {"FFMA": Fraction(2)} for step in COUNTED},
        90: {step: {"LOP3": Fraction(3, 2)} for step in COUNTED},
    }
    table = kernels.instructions(counts)
    assert table.rows[0] == ("nearest_even", "single", "Plain", "2", "3/2", "3/2 LOP3")


def test_scaled_step_takes_seven_instructions():
    tool = disassembler()
    if tool is None:
        pytest.skip("no nvdisasm on the path or with Triton")
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed: pip install 'cbfloat[cuda]'")
    assert sum(count("nearest_even", "scaled", "Plain", 80, tool).values()) == 7


def test_command_line_without_a_process_says_so(capsys):
    with pytest.raises(SystemExit):
        kernels.main(["--processes", "0"])
    assert "--processes: got 0, must be at least 1" in capsys.readouterr().err
