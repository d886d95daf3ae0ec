"""The model of the vector unit gives what golden gives; other behaviour of a unit is refuted."""

from itertools import pairwise

import pytest

from golden import FP32, Reduction, exact_steps, reference
from hdl.vector.parameters import VectorParameters
from hdl.vector.promotions import QueuedPromotions
from lab.netlists.yosys import netlist_of_verilog
from lab.proofs.along_model.induction import induction
from lab.proofs.conditions import that_fail
from lab.proofs.control import TINY
from lab.proofs.engines import bitwuzla_api
from lab.proofs.left_out import OpenVectorMac
from lab.proofs.terms import bits, both, define, equal, inverse
from lab.proofs.vector_control import Size, VectorControlAlone, formula
from lab.proofs.vector_model import VectorModel
from lab.proofs.vector_steady import steady_component

pytestmark = pytest.mark.long

PARAMETERS = {"operands": (TINY,), "inner": "operand", "registers": 4, "stages": 1, "chunk_bits": 2}
LANES, CHUNK, NORMAL = 4, 2, TINY.one
#: Operands of three beats in every lane; their sums round.
A = [[NORMAL, NORMAL + 1, 1, NORMAL], [NORMAL + 1, NORMAL, NORMAL, 8 | NORMAL], [1, NORMAL, NORMAL + 1, NORMAL + 1]]
B = [[1, NORMAL, NORMAL, NORMAL + 1], [NORMAL, 1, NORMAL + 1, NORMAL], [NORMAL, NORMAL, 1, 8 | 1]]


def number(step, code, is_wide):
    """A code as an accumulator: in any form, for the functions are unknown, but a narrow one at the left."""
    return bits(code if is_wide else code << step.number - TINY.width, step.number)


def reduced(monkeypatch, model, level):
    """Let golden reduce, and return its results with the facts that they give about the steps of the lanes."""
    facts, results = [], []
    multiply_accumulate = exact_steps.multiply_accumulate
    for element in range(LANES // (2 if level == 0 else 1)):
        its_lane = 2 * element if level == 0 else element

        def spy(a, b, acc, *, operand, accumulator, rounding, subnormals, its_lane=its_lane):
            formats = {"operand": operand, "accumulator": accumulator}
            code, flags = multiply_accumulate(a, b, acc, rounding=rounding, subnormals=subnormals, **formats)
            is_wide = accumulator == FP32
            step, own = model.steps[its_lane & ~1 if is_wide else its_lane], model.steps[its_lane]
            given = [step.entering(bits(each, TINY.width)) for each in (a, b)]
            wide, zeros = bits(is_wide, 1), bits(0, 2)
            gives = f"(concat {bits(flags, 5)} {zeros} {number(step, code, is_wide)})"
            facts.append(equal(step.step(*given, number(step, acc, is_wide), zeros, wide), gives))
            its_code = bits(code, step.code_width)
            facts.append(equal(f"(code_of{step.tag} {number(step, code, is_wide)} {zeros} {wide})", its_code))
            if not is_wide:
                operand_form = own.entering(bits(code, TINY.width))
                facts.append(equal(f"(promoted_of{own.tag} {number(own, code, False)} {zeros})", operand_form))
            return code, flags

        with monkeypatch.context() as patched:
            patched.setattr(exact_steps, "multiply_accumulate", spy)
            columns = [[beat[element] for beat in rows] for rows in (A, B)]
            # The unit that is proven reduces in the operand format itself, as narrow as that is.
            own = Reduction.for_level(level, TINY, chunk=None if level == 0 else CHUNK, inner=TINY)
            results.append(reference.dot(*columns, operand=TINY, reduction=own))
    assert facts, "nobody has listened to golden"
    return results, facts


def payload(results, level, part, register):
    """The beat in which results leave, as `hdl.VectorMac` says."""
    flags, words = [0] * LANES, [0] * (LANES // 2)
    if level == 2:
        flags = [int(raised) for _, raised in results]
        words = [low | high << 16 for (low, _), (high, _) in pairwise(code for code in results)][::2]
    else:
        shown = results if level == 0 else results[part::2]
        flags[::2] = [int(raised) for _, raised in shown]
        words = [code for code, _ in shown]
    word = sum(code << 32 * at for at, code in enumerate(words))
    word |= sum(raised << 16 * LANES + 5 * at for at, raised in enumerate(flags))
    return bits(word | register << 21 * LANES + 2 | part << 21 * LANES + 4, 21 * LANES + 5)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_model_gives_what_golden_gives(level, monkeypatch):
    model = VectorModel(VectorParameters(lanes=LANES, **PARAMETERS))
    results, facts = reduced(monkeypatch, model, level)
    text = model.declarations + define("chunk", "(_ BitVec 2)", bits(CHUNK, 2)) + define("is_unused", "Bool", "false")
    # Between two of its beats one of another row, which it must not see, and one that is refused.
    for at, (its_level, register) in enumerate([(level, 2), (2, 0), (level, 2), (3, 2), (level, 2)]):
        fields = {"level": bits(its_level, 2), "register": bits(register, 2)}
        fields |= {"first": bits(at < 2, 1), "last": bits(at == 4, 1)}
        fields |= {
            f"{name}_{lane}": bits(rows[at // 2][lane], 4)
            for name, rows in (("a", A), ("b", B))
            for lane in range(LANES)
        }
        text += model.accept("true", fields, "chunk")
    legal = both(*(f"legal_{beat}" for beat in range(model.beats)))
    text += f"(assert {both(legal, 'gives_4_0', inverse('gives_2_0'), *facts)})\n"
    assert bitwuzla_api.decide(text)[0] == "sat"
    parts = [0, 1] if level == 1 else [0]
    right = both(*(equal(f"answer_4_{part}", payload(results, level, part, 2)) for part in parts))
    assert bitwuzla_api.decide(f"{text}(assert {inverse(right)})\n")[0] == "unsat"
    assert bitwuzla_api.decide(f"{text}(assert {equal('gives_4_1', 'true')})\n")[0] == (
        "sat" if level == 1 else "unsat"
    )


class Blind(QueuedPromotions):
    def is_same(self, one, other):
        return one.register == other.register


class Forgetful(QueuedPromotions):
    def give(self, m, *arguments):
        super().give(m, *arguments)
        m.d.comb += self.operand_flags[0].eq(0)


class WithBlindPromotions(OpenVectorMac):
    promotions_type = Blind


class WithForgetfulPromotions(OpenVectorMac):
    promotions_type = Forgetful


def steady_fails(folder, **changes):
    """Return the conditions that fail in a unit of three ranks."""
    text = induction(steady_component(2, 3, (TINY,), **changes), folder)
    answer, model = bitwuzla_api.decide(text)
    ports = {name.partition(".")[2]: int(value, 16) for name, value in model.items() if name.startswith("fails.")}
    return that_fail(text, ports) if answer == "sat" else ""


def test_order_in_the_unit_is_proven_for_beats_without_end(tmp_path):
    assert not steady_fails(tmp_path)


def test_promotion_that_meets_another_of_its_pair_is_missed(tmp_path):
    assert steady_fails(tmp_path, unit_type=WithBlindPromotions).endswith("behind it")


def refuted(folder, drain, **changes):
    component = VectorControlAlone(lanes=2, **PARAMETERS, **changes)
    size = Size(2, PARAMETERS["stages"], PARAMETERS["registers"], beats=1, drain=drain)
    return bitwuzla_api.decide(formula(component, netlist_of_verilog(component, folder), size))[0] == "sat"


def test_unit_is_proven_and_results_that_have_not_left_are_missed(tmp_path):
    assert not refuted(tmp_path, 11)
    assert refuted(tmp_path, 5)


def test_flags_that_are_lost_at_a_promotion_are_missed(tmp_path):
    assert refuted(tmp_path, 11, unit_type=WithForgetfulPromotions)
