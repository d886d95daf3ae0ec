"""A sequential model of the SIMD multiply-accumulate unit: beat by beat, with uninterpreted functions as steps.

A beat finds the reduction that it continues by looking back at all earlier beats, of any rows. So the size of the
model does not depend on the number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from hdl.vector.parameters import VectorParameters
from hdl.vector.ports import RESULT_WIDTH
from lab.proofs.model import ALIGNMENT, UNSUPPORTED, Chunk, is_built
from lab.proofs.terms import bits, both, define, either, equal, inverse, slice_of, widened
from lab.proofs.unknown_step import FLAGS_WIDTH, UnknownStep

__all__ = ["PARTS", "VectorModel"]

#: Of a result of level 1.
PARTS = (0, 1)
_CODE = RESULT_WIDTH // 2


class VectorModel:
    """The reductions of a unit after every beat, as definitions.

    Parameters
    ----------
    parameters : VectorParameters
        Of one operand format, all levels and flags.

    Attributes
    ----------
    steps : list of UnknownStep
        One for each lane, with its own functions.
    beats : int
        Number of beats so far.
    """

    def __init__(self, parameters: VectorParameters) -> None:
        self.parameters = parameters
        self.steps = [UnknownStep(parameters.of_lane(lane), f"_{lane}") for lane in range(parameters.lanes)]
        self.beats = 0
        count = f"(_ BitVec {parameters.chunk_bits})"
        # Sort and start of a reduction's state; steps of the even lanes make the odd lanes' fp32 totals.
        self._state = {"open": ("Bool", "false"), "later": ("Bool", "false")}
        self._state |= {name: (count, bits(0, parameters.chunk_bits)) for name in ("count", "size")}
        for lane, step in enumerate(self.steps):
            names = ("partial", "total") if lane % 2 else ("partial", "total", "second")
            self._state |= {f"{name}_{lane}": (step.sort, step.zero) for name in names}

    @property
    def declarations(self) -> str:
        """The functions."""
        return "".join(step.declarations for step in self.steps)

    def accept(self, takes: str, beat: Mapping[str, str], port: str) -> str:
        """Define the reduction after the next beat, if that beat is taken.

        A beat that continues a reduction which no beat has begun is legal if ``is_unused`` is set: it begins at +0.

        For beat n, this also defines ``legal_<n>``; ``gives_<n>_<part>`` and ``answer_<n>_<part>``, its results;
        ``refused_<n>`` and ``register_<n>``.

        Parameters
        ----------
        takes : str
        beat : mapping of str to str
            ``level``, ``register``, ``first``, ``last``; ``a_0``, ``b_0`` and so on; in a unit with several modes
            ``rounding``, ``random_0``, ``random_promotion_0`` and so on.
        port : str
            The value of the port ``chunk``.
        """
        now, parameters = self.beats, self.parameters
        self.beats += 1
        level = beat["level"]
        text = define(f"level_{now}", "(_ BitVec 2)", level)
        text += define(f"register_{now}", f"(_ BitVec {parameters.register_width})", beat["register"])
        misaligned = both(equal(level, bits(1, 2)), equal(slice_of(beat["register"], 0, 0), "#b1"))
        error = f"(ite {misaligned} {bits(ALIGNMENT, 2)} {bits(0, 2)})"
        error = f"(ite {is_built(beat, parameters)} {error} {bits(UNSUPPORTED, 2)})"
        text += define(f"error_{now}", "(_ BitVec 2)", error)
        is_refused = inverse(equal(f"error_{now}", bits(0, 2)))
        text += define(f"refused_{now}", "Bool", both(takes, is_refused))
        text += define(f"sound_{now}", "Bool", both(takes, inverse(is_refused)))
        text += define(f"is_chain_{now}", "Bool", equal(level, bits(0, 2)))
        text += define(f"is_wide_{now}", "Bool", inverse(equal(level, bits(2, 2))))
        text += define(f"wide_{now}", "(_ BitVec 1)", f"(ite is_wide_{now} #b1 #b0)")
        first, last = equal(beat["first"], "#b1"), equal(beat["last"], "#b1")
        text += self._look_back(now, first)
        text += self._reduce(now, beat, first, last, port)
        return text + self._answers(now, last)

    def _look_back(self, now: int, first: str) -> str:
        """Define the earlier state of the reduction that a beat continues, and whether the beat may continue it."""
        high = self.parameters.register_width - 1
        text, may_continue = "", "is_unused"
        held = {name: start for name, (_, start) in self._state.items()}
        for then in range(now):
            same_row = equal(f"register_{then}", f"register_{now}")
            same_level = equal(f"level_{then}", f"level_{now}")
            pairs = [slice_of(f"register_{beat}", high, 1) if high else "#b0" for beat in (then, now)]
            any_two_rows = either(*(equal(f"level_{beat}", bits(1, 2)) for beat in (then, now)))
            touches = both(f"sound_{then}", either(same_row, both(equal(*pairs), any_two_rows)))
            may_continue = f"(ite {touches} {both(same_row, same_level)} {may_continue})"
            same = f"same_{then}_{now}"
            text += define(same, "Bool", both(f"sound_{then}", same_row, same_level))
            held = {name: f"(ite {same} {name}_after_{then} {term})" for name, term in held.items()}
        text += "".join(define(f"{name}_at_{now}", self._state[name][0], term) for name, term in held.items())
        return text + define(f"legal_{now}", "Bool", either(inverse(f"sound_{now}"), first, may_continue))

    def _reduce(self, now: int, beat: Mapping[str, str], first: str, last: str, port: str) -> str:
        """Define the reduction after a beat, in every lane."""
        own = {name: f"{name}_at_{now}" for name in self._state}
        is_chain = f"is_chain_{now}"
        chunk = Chunk(str(now), own, first, last, inverse(is_chain), self.parameters.chunk_bits, port)
        text, after = chunk.text, dict(chunk.after)
        promotes = both(inverse(is_chain), chunk.ends)

        def starting(condition: str, step: UnknownStep, value: str) -> str:
            return f"(ite {condition} {step.zero} {value})"

        def promotion(of: int, by: int, onto: str, wide: str) -> str:
            value, step = f"product_{of}_{now}", self.steps[by]
            operand, flags = self.steps[of].promoted(value), self.steps[of].flags_of(value)
            controls = step.controls_of(self._brought(beat, of), promotion=True)
            return step.add(operand, step.one, starting(chunk.is_first, step, own[onto]), wide, flags, controls)

        for lane, step in enumerate(self.steps):
            is_even = lane % 2 == 0
            codes = [beat[f"{name}_{lane}"] for name in "ab"]
            onto = starting(chunk.starts, step, own[f"partial_{lane}"])
            if is_even:
                # A chain of level 0 has only a total; a chunk of the others starts at zero and ends in the total.
                codes = [f"(ite {is_chain} {beat[f'{name}_{lane // 2}']} {beat[f'{name}_{lane}']})" for name in "ab"]
                onto = f"(ite {is_chain} {starting(first, step, own[f'total_{lane}'])} {onto})"
                controls = step.controls_of(self._brought(beat, lane // 2))
                if step.controls.size:
                    controls = f"(ite {is_chain} {controls} {step.controls_of(self._brought(beat, lane))})"
            else:
                controls = step.controls_of(self._brought(beat, lane))
            a, b = map(step.entering, codes)
            product = step.add(a, b, onto, f"(ite {is_chain} #b1 #b0)" if is_even else "#b0", controls=controls)
            text += define(f"product_{lane}_{now}", step.sort, product)
            after[f"partial_{lane}"] = f"product_{lane}_{now}"
        for lane in range(len(self.steps)):
            total, is_even = own[f"total_{lane}"], lane % 2 == 0
            promoted = promotion(lane, lane, f"total_{lane}", f"wide_{now}" if is_even else "#b0")
            after[f"total_{lane}"] = f"(ite {promotes} {promoted} {total})"
            if is_even:
                after[f"total_{lane}"] = f"(ite {is_chain} product_{lane}_{now} {after[f'total_{lane}']})"
                # The odd lane's chunk is promoted to fp32 in the even lane.
                second = promotion(lane + 1, lane, f"second_{lane}", "#b1")
                after[f"second_{lane}"] = f"(ite {promotes} {second} {own[f'second_{lane}']})"
        return text + "".join(define(f"{name}_after_{now}", self._state[name][0], term) for name, term in after.items())

    def _brought(self, beat: Mapping[str, str], lane: int) -> Mapping[str, str]:
        """Return a beat's mode and random number for a lane."""
        names = ("random", "random_promotion")
        return {**beat, **{name: beat[f"{name}_{lane}"] for name in names if f"{name}_{lane}" in beat}}

    def _answers(self, now: int, last: str) -> str:
        """Define the results of a beat."""
        is_wide, gives = f"is_wide_{now}", both(f"sound_{now}", last)
        text = define(f"gives_{now}_0", "Bool", either(f"refused_{now}", gives))
        text += define(f"gives_{now}_1", "Bool", both(gives, equal(f"level_{now}", bits(1, 2))))
        for part in PARTS:
            words: list[str] = []
            flags: list[str] = []
            for even in range(0, self.parameters.lanes, 2):
                own, other = self.steps[even], self.steps[even + 1]
                value = f"{'second' if part else 'total'}_{even}_after_{now}"
                code = own.code_of(value, "#b1" if part else f"wide_{now}")
                odd = f"total_{even + 1}_after_{now}"
                high = widened(other.code_of(odd, "#b0"), other.code_width, _CODE)
                narrow = f"(concat {high} {slice_of(code, _CODE - 1, 0)})"
                words = [code if part else f"(ite {is_wide} {code} {narrow})", *words]
                odd_flags = f"(ite {is_wide} {bits(0, FLAGS_WIDTH)} {other.flags_of(odd)})"
                flags = [bits(0, FLAGS_WIDTH) if part else odd_flags, own.flags_of(value), *flags]
            width = (RESULT_WIDTH // 2 + FLAGS_WIDTH) * self.parameters.lanes
            result = f"(ite refused_{now} {bits(0, width)} (concat {' '.join([*flags, *words])}))"
            payload = f"(concat {bits(part, 1)} register_{now} error_{now} {result})"
            sort = f"(_ BitVec {1 + self.parameters.register_width + 2 + width})"
            text += define(f"answer_{now}_{part}", sort, payload)
        return text
