"""Verdicts of a proof: proven, refuted with operands, unknown, tool error; and formulas that are not empty."""

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest

from golden import BF16, CB16, CBFLOAT16, FP16
from golden.rounding import SUBNORMALS
from hdl.axi_stream import AxiStreamMac
from hdl.catalogue import Kind, released
from hdl.converter import FloatConverter
from hdl.cores.conversion import Convert
from hdl.cores.step_formats import StepFormats
from hdl.mac.parameters import DEPTHS
from lab.netlists import errors
from lab.netlists.yosys import EVERTED_UNIT, netlist_of
from lab.proofs import by_interval, by_theory, cut, proof
from lab.proofs.__main__ import main
from lab.proofs.axi_stream import wiring_formula
from lab.proofs.block_stream import block_stream_proofs
from lab.proofs.catalogue import catalogue, select
from lab.proofs.conditions import named_conditions, that_fail
from lab.proofs.converters import converter_proofs, formula
from lab.proofs.cut import Mode
from lab.proofs.engines import bitwuzla_api
from lab.proofs.faults import PinnedFault, pinned_faults
from lab.proofs.halves import SecondHalf
from lab.proofs.lanes import lane_pipeline
from lab.proofs.mutants import CORES
from lab.proofs.pipelines import conversions
from lab.proofs.proof import BITWUZLA, CVC5, ENGINES, Z3_CADICAL, Proof, Verdict, engine_version, prove
from lab.proofs.published import publish_proven, take_proven
from lab.proofs.steps import CORES as STEPS
from lab.proofs.steps import MODES, explain_sum
from lab.proofs.terms import DOUBLE

SQUARE_OF_THREE = "(declare-const |top.x| (_ BitVec 8))\n(assert (= (bvmul |top.x| |top.x|) #x09))\n"
NO_SOLUTION = "(declare-const |top.x| (_ BitVec 8))\n(assert (= (bvmul |top.x| |top.x|) #x03))\n"


@pytest.fixture(autouse=True)
def _fresh_versions():
    engine_version.cache_clear()
    yield
    engine_version.cache_clear()


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("formal")


def proof_of(text, engine=BITWUZLA, timeout=60):
    return Proof("claim", "unit", "mode", "none", engine, lambda folder: text, timeout)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_proves_and_refutes(engine, folder):
    assert prove(proof_of(NO_SOLUTION, engine), folder).verdict is Verdict.PROVEN
    refuted = prove(proof_of(SQUARE_OF_THREE, engine), folder)
    assert refuted.verdict is Verdict.REFUTED
    assert refuted.ports["x"] ** 2 % 256 == 9
    assert f"x {refuted.ports['x']:#x}" in refuted.remark


@pytest.mark.parametrize("engine", ENGINES)
def test_converter_of_another_format_is_refuted_with_operands_and_goldens_word(engine, folder):
    # A cbfloat16 converter in the place of cb16's: the specification is right, the unit is not.
    right = next(p for p in converter_proofs() if p.mode == "cb16 to float16" and p.engine == engine)
    module = by_interval if engine == BITWUZLA else by_theory
    wrong = netlist_of(Convert(CBFLOAT16, FP16), folder / "netlists")
    told = prove(replace(right, build=lambda _: formula(wrong, CB16, FP16, module.conversion)), folder)
    assert told.verdict is Verdict.REFUTED
    assert f"code {told.ports['code']:#x}" in told.remark
    assert "golden.reference gives" in told.remark
    assert "the specification is not" not in told.remark


def test_wrong_specification_is_told_from_a_wrong_unit(folder):
    right = next(p for p in converter_proofs() if p.mode == "cb16 to float16" and p.engine == BITWUZLA)
    unit = netlist_of(Convert(CB16, FP16), folder / "netlists")
    told = prove(replace(right, build=lambda _: formula(unit, CBFLOAT16, FP16, by_interval.conversion)), folder)
    assert told.verdict is Verdict.REFUTED
    assert told.remark.endswith("the unit is right, the specification is not")


def test_undecided_proof_is_unknown_and_is_not_remembered(tmp_path):
    # Only starting the solver takes longer than that.
    told = prove(proof_of(NO_SOLUTION, timeout=0), tmp_path)
    assert (told.verdict, told.remark) == (Verdict.UNKNOWN, "not decided within 0 s")
    assert not list(tmp_path.glob("cache/*"))


def test_missing_cadical_is_a_tool_error(monkeypatch, tmp_path):
    monkeypatch.setattr(errors.shutil, "which", lambda name: None)
    told = prove(proof_of(NO_SOLUTION, Z3_CADICAL), tmp_path)
    assert told.verdict is Verdict.TOOL_ERROR
    assert "cadical is not installed" in told.remark


def test_missing_solver_is_a_tool_error(monkeypatch, tmp_path):
    def absent(name):
        raise errors.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(errors.metadata, "version", absent)
    told = prove(proof_of(NO_SOLUTION, CVC5), tmp_path)
    assert told.verdict is Verdict.TOOL_ERROR
    assert "pip install -e '.[formal]'" in told.remark


@pytest.mark.parametrize("engine", ENGINES)
def test_formula_that_a_solver_cannot_read_is_a_tool_error(engine, tmp_path):
    told = prove(proof_of("(assert (= #b1 nonsense))\n", engine), tmp_path)
    assert told.verdict is Verdict.TOOL_ERROR
    assert engine in told.remark


def test_too_little_memory_is_a_tool_error(monkeypatch, tmp_path):
    monkeypatch.setattr(proof, "MEBIBYTES", 64)
    told = prove(proof_of(NO_SOLUTION, Z3_CADICAL), tmp_path)
    assert told.verdict is Verdict.TOOL_ERROR
    assert told.remark.startswith("z3+cadical: ")


def test_answer_is_remembered_with_formula_and_solver(monkeypatch, tmp_path):
    assert not prove(proof_of(NO_SOLUTION), tmp_path).cached
    assert prove(proof_of(NO_SOLUTION), tmp_path).cached
    assert not prove(proof_of(NO_SOLUTION.replace("#x03", "#x02")), tmp_path).cached
    monkeypatch.setattr(proof, "engine_version", lambda engine: "another one")
    assert not prove(proof_of(NO_SOLUTION), tmp_path).cached


def test_published_answers_are_proven_ones_and_spare_their_own_formulas_alone(monkeypatch, tmp_path):
    before, after, file = tmp_path / "before", tmp_path / "after", tmp_path / "proven.txt"
    publish_proven([prove(proof_of(text), before) for text in (NO_SOLUTION, SQUARE_OF_THREE)], file, least=0)
    assert len(file.read_text().splitlines()) == 1
    assert take_proven(after, file) == 1
    assert prove(proof_of(NO_SOLUTION), after).verdict is Verdict.PROVEN
    assert prove(proof_of(NO_SOLUTION), after).cached
    told = prove(proof_of(SQUARE_OF_THREE), after)
    assert (told.verdict, told.cached) == (Verdict.REFUTED, False)
    monkeypatch.setattr(proof, "engine_version", lambda engine: "another one")
    assert not prove(proof_of(NO_SOLUTION), after).cached


def test_answer_of_this_machine_stands_before_a_published_one(tmp_path):
    key = prove(proof_of(SQUARE_OF_THREE), tmp_path).key
    (tmp_path / "proven.txt").write_text(f"{key} 1.0\n")
    take_proven(tmp_path, tmp_path / "proven.txt")
    assert prove(proof_of(SQUARE_OF_THREE), tmp_path).verdict is Verdict.REFUTED


@pytest.mark.turns
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: f"{mode}_{len(mode.formats.accumulators)}")
def test_premises_of_the_halves_can_be_met(mode, folder):
    # By a number, a zero and an infinity as the product: a premise that nothing meets would prove anything.
    unit = netlist_of(SecondHalf(mode.formats), folder / "netlists").instance()
    premises = cut.second_half(unit, mode, DOUBLE).rpartition("(assert (not ")[0]
    for case in ("is_zero_product", "is_special_product", "(not (or is_zero_product is_special_product))"):
        assert bitwuzla_api.decide(f"{premises}(assert {case})\n")[0] == "sat"


def test_refuted_sum_is_told_with_goldens_word():
    mode = Mode(StepFormats((CBFLOAT16,), (CBFLOAT16,)), CBFLOAT16, CBFLOAT16)
    ones = {
        "significand": 1 << 18,
        "exponent": 2 * CBFLOAT16.bias,
        "sign": 0,
        "is_nan": 0,
        "is_infinite": 0,
        "o": 0x4001,
    }
    told = explain_sum(mode, {**ones, "acc": CBFLOAT16.one})
    assert told == "golden.reference gives 0x4000 with flags 0x0, the unit 0x4001 with 0x0"
    # A sum of zeros, and an exponent far below everything, as a zero product has it.
    zero = {**ones, "significand": 0, "exponent": 0x180, "sign": 1, "o": 0x8000}
    assert explain_sum(mode, {**zero, "acc": 0x8000}).startswith("golden.reference gives 0x8000 with flags 0x0")


def stream(unit, stages, folder):
    plan = FloatConverter(source=BF16, destination=FP16).parameters.plan
    return conversions(unit, plan, stages, folder / "netlists")


def test_stream_that_is_a_queue_is_proven_one_that_is_longer_is_refuted(folder):
    decide = bitwuzla_api.decide
    unit = partial(FloatConverter, source=BF16, destination=FP16)
    assert decide(stream(unit(stages=2), 2, folder))[0] == "unsat"
    assert decide(stream(unit(stages=3), 2, folder))[0] == "sat"
    assert decide(stream(FloatConverter(source=CBFLOAT16, destination=FP16, stages=2), 2, folder))[0] == "sat"


def test_stream_of_every_size_of_block_quantiser_is_built(folder):
    # Blocks of numbers that are smaller than those of NVFP4 were refused, so that `make formal` ended in an error.
    built = [proof.build(folder / "netlists") for proof in block_stream_proofs() if proof.fast]
    assert len(built) == 3
    assert all(built)


@pytest.mark.parametrize("stages", DEPTHS)
@pytest.mark.parametrize("subnormals", SUBNORMALS)
def test_pipeline_of_a_lane_of_every_depth_is_built(subnormals, stages, folder):
    # At 6, 8, 9 and 10 stages Yosys ended in "Conflicting init values": a register with constant bits had a reset.
    assert "(assert (not" in lane_pipeline((CBFLOAT16,), stages, folder, subnormals=subnormals)


def test_ids_and_titles_are_distinct_and_the_fast_tier_is_part_of_all():
    entries = catalogue()
    for names in ([entry.id for entry in entries], [entry.title for entry in entries]):
        assert len(set(names)) == len(names)
    assert {entry.id for entry in select("fast", [])} < {entry.id for entry in entries}
    assert sum(core.count for core in CORES) >= 100


def test_ids_are_made_of_words_that_a_shell_and_a_file_name_take():
    odd = [entry.id for entry in catalogue() if not re.fullmatch(r"[a-z0-9_+.-]+(/[a-z0-9_+.-]+)+", entry.id)]
    assert not odd


def test_step_of_every_released_unit_is_among_those_proven():
    formats = {unit.name: unit.build().parameters.formats for unit in released(Kind.MAC, Kind.AXI_STREAM, Kind.VECTOR)}
    assert [name for name, each in formats.items() if each not in STEPS] == []


def test_id_stays_when_the_titles_change():
    proof = next(proof for proof in converter_proofs() if proof.mode == "cb16 to float16" and proof.engine == BITWUZLA)
    assert proof.id == "converter/cb16_to_float16/interval/bitwuzla"
    other = replace(proof, unit="a", mode="b", specification="c")
    assert (other.id, other.title) == (proof.id, "a b (c, bitwuzla)")


def test_id_that_matches_nothing_is_refused():
    with pytest.raises(ValueError, match="got 'nothing', must begin an id of the fast tier: converter, step, "):
        select("fast", ["nothing"])


@pytest.mark.long
def test_fault_is_refuted_by_the_proof_that_it_declares_and_no_fault_is_not(tmp_path):
    fault = next(each for each in pinned_faults() if each.fault.name == "axi_reset_is_active_high")
    caught = fault.run(tmp_path)
    assert (caught.id, caught.verdict) == ("fault/axi_reset_is_active_high", Verdict.CAUGHT)
    assert caught.remark.startswith("axi_stream/cbfloat16/bitwuzla: ")
    harmless = replace(fault.fault, find="sync.clk.eq(self.aclk)", replace="sync.clk.eq(self.aclk | self.aclk)")
    assert PinnedFault(harmless).run(tmp_path).verdict is Verdict.SURVIVED
    assert PinnedFault(replace(harmless, is_none=True)).run(tmp_path).verdict is Verdict.EQUIVALENT


@pytest.mark.long
def test_fault_that_an_induction_refutes_names_the_conditions_that_fail(tmp_path):
    fault = next(each for each in pinned_faults() if each.fault.name == "chunk_port_a_cycle_late")
    caught = fault.run(tmp_path)
    assert caught.verdict is Verdict.CAUGHT
    said, fails = caught.remark.split("; does not hold: ")
    assert said.startswith("control/induction/stages_3/bitwuzla: ")
    assert re.fullmatch(r"[^;]+ (in the cycle|behind it)", fails)


def test_conditions_that_fail_are_told_by_their_names():
    text = named_conditions("now", "in the cycle", ["first", "second, of two", "third"], "#b1111", 4)
    text += named_conditions("then", "behind it", ["last"], "#b1", 1)
    assert that_fail(text, {"now": 0b1111, "then": 1}) == ""
    assert that_fail(text, {"now": 0b1001, "then": 0}) == (
        "does not hold: second, of two, third in the cycle; last behind it"
    )
    assert that_fail("(assert false)", {}) == ""


def test_command_writes_reports_and_tells_tool_errors_by_its_status(monkeypatch, tmp_path, capsys):
    arguments = ["converter/float16_to_float32/interval", "--folder", str(tmp_path)]
    assert main(arguments) == 0
    (row,) = json.loads((tmp_path / "formal.json").read_text(encoding="utf-8"))["proofs"]
    assert (row["id"], row["mode"], row["verdict"]) == (
        "converter/float16_to_float32/interval/bitwuzla", "float16 to float32", "proven",
    )  # fmt: skip
    assert "| converter | float16 to float32 | interval | bitwuzla | proven |" in (tmp_path / "formal.md").read_text(
        encoding="utf-8"
    )
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert main(["converter/float16_to_float32/to_fp/z3", "--folder", str(tmp_path)]) == 2
    assert "cadical is not installed" in capsys.readouterr().out


def test_command_with_a_refutation_and_without_cadical_writes_both_verdicts(monkeypatch, tmp_path):
    proofs = [proof_of(SQUARE_OF_THREE, BITWUZLA), proof_of(NO_SOLUTION, Z3_CADICAL)]
    monkeypatch.setattr("lab.proofs.__main__.select", lambda *_: proofs)
    monkeypatch.setattr("lab.proofs.report.evidence", lambda _: [])
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert main(["--folder", str(tmp_path)]) == 1
    found = json.loads((tmp_path / "formal.json").read_text(encoding="utf-8"))
    assert [one["verdict"] for one in found["proofs"]] == ["REFUTED", "tool error"]
    assert found["engines"][0].startswith("z3+cadical: cadical is not installed: run `make formal`")
    assert "| REFUTED |" in (tmp_path / "formal.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_second_half_of_several_formats_is_not_that_of_another_format(folder):
    # The mode says cbfloat16, the port of the core chooses bfloat16: the same widths, another rounding.
    mode = next(mode for mode in MODES if len(mode.formats.operands) == 3 and mode.operand == CBFLOAT16)
    unit, model = (netlist_of(SecondHalf(formats), folder) for formats in (mode.formats, mode.model.formats))
    right = cut.same_second_half(unit.instance(), model, mode)
    wrong = right.replace(
        "(assert (= |top.accumulator_format| (_ bv0 2)))", "(assert (= |top.accumulator_format| (_ bv2 2)))"
    )
    assert wrong != right
    assert prove(proof_of(right), folder).verdict is Verdict.PROVEN
    assert prove(proof_of(wrong), folder).verdict is Verdict.REFUTED


def test_wiring_that_refuses_the_second_format_of_two_is_refuted(folder):
    component = AxiStreamMac(registers=8)
    netlist = netlist_of(component, folder, EVERTED_UNIT)
    assert prove(proof_of(wiring_formula(component, netlist)), folder).verdict is Verdict.PROVEN
    # The unit has one format; said to have two, it is wrong to refuse the second.
    component.unit.operands = (CBFLOAT16, FP16)
    assert prove(proof_of(wiring_formula(component, netlist)), folder).verdict is Verdict.REFUTED


@pytest.mark.parametrize("engine", ENGINES)
def test_functions_of_many_arguments_give_the_same_for_the_same(engine, folder):
    # More pairs of arguments than z3's tactic handles by default.
    words = [f"x{at}" for at in range(60)]
    text = "(declare-fun f ((_ BitVec 8)) (_ BitVec 8))\n"
    text += "".join(f"(declare-const {word} (_ BitVec 8))\n" for word in words)
    differences = " ".join(f"(distinct (f {word}) (f {words[0]}))" for word in words)
    text += "".join(f"(assert (= {word} (bvadd {before} #x00)))\n" for before, word in pairwise(words))
    assert prove(proof_of(f"{text}(assert (or {differences}))\n", engine), folder).verdict is Verdict.PROVEN


@pytest.mark.long
def test_proofs_side_by_side_do_not_meet_in_files_or_in_what_they_leave_out(tmp_path):
    # Two proofs of one formula took its file from each other; two units without their lanes, the lanes.
    ids = ["control/induction/stages_1/", "control/induction/stages_2/", "axi_stream/"]
    chosen = [proof for proof in select("full", ids) if proof.engine == BITWUZLA]
    same = [proof_of(NO_SOLUTION) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda proof: proof.run(tmp_path), [*chosen, *chosen, *same]))
    assert [outcome.verdict for outcome in outcomes] == [Verdict.PROVEN] * (2 * len(chosen) + 4), outcomes
