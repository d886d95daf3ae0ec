"""Reductions: everything that a long sum of products computes, as one value (NUMERICS section 5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, TypedDict, Unpack

from golden.formats import CBFLOAT16, FP32, FloatFormat, as_format
from golden.lines import accumulator_of, accumulator_text, format_of, format_text, words_of
from golden.machine import Machine
from golden.rounding import Randomness, Rounding, as_rounding, as_subnormals

__all__ = ["DEFAULT_CHUNK", "LEVELS", "Reduction", "ReductionKeywords", "default_inner", "reduction_of"]

#: The precision optimization levels.
LEVELS = (0, 1, 2)

#: Products in a chunk unless told otherwise (NUMERICS section 5).
DEFAULT_CHUNK = 32

# The kernels count products in 64 bits.
_LONGEST_CHUNK = 2**63 - 1

_NEAREST_EVEN = Rounding.NEAREST_EVEN


def default_inner(operand: FloatFormat) -> FloatFormat:
    """Return the inner format of an operand format unless one is given.

    Its own, or cbfloat16 for 8 bits and fewer, and for formats without infinities.
    """
    return operand if operand.width > 8 and operand.has_inf else CBFLOAT16


#: The first word of random bits, at the end of a line.
_RANDOM = "random_bits="


def _random_text(random: Randomness) -> str:
    return f" {_RANDOM}{random.random_bits} seed={random.seed} call={random.call}"


def _by_its_name(given: object) -> str:
    return f"; golden.format_named({given!r}) returns one by its name" if isinstance(given, str) else ""


def _as_chunk(given: object) -> None:
    if given is None:
        return
    if not isinstance(given, int) or isinstance(given, bool):
        raise TypeError(f"chunk: got {given!r}, must be an int of at least 1, or None for one chunk")
    if given < 1:
        raise ValueError(f"chunk: got {given}, must be at least 1, or None for one chunk of any length")
    if given > _LONGEST_CHUNK:
        raise ValueError("chunk: got an int beyond 2**63 - 1, must be at most that, or None for one chunk")


@dataclass(frozen=True, init=False)
class Reduction:
    """The arithmetic of a product: products are summed in `inner` within a chunk, chunks are summed in `outer`.

    ``str`` writes it as one line of text, and `parse` reads it back.

    Parameters
    ----------
    inner : FloatFormat
        Accumulator within a chunk; every chunk starts from +0.
    chunk : int or None
        Consecutive products in a chunk, at least 1; None means one chunk of any length.
    outer : FloatFormat
        Accumulator across chunks, and the format of the result unless `out` is given.
    operand : FloatFormat, optional
        Format of the factors; without it, each call names theirs.
    out : FloatFormat, optional
        Format into which the result is converted once more.
    rounding : Rounding or str
        Mode of every step and promotion, to nearest even unless given.
    out_rounding : Rounding or str
        Mode of the conversion into `out`, likewise.
    random : Randomness, optional
        Random bits of stochastic roundings; seed 0, call 0 and 16 bits unless given. None where no mode is stochastic.
    accumulator : Accumulator or GroupedSums, optional
        The accumulator of another machine, which sums products in its own way: `inner` and `outer` are the format of
        its total, and the chunk is None.
    subnormals : str
        ``"keep"``, unless given, or ``"flush"``: subnormal operands, initial values and results become zeros of their
        sign (NUMERICS section 12).

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If `chunk` is below 1 or beyond 64 bits, `inner` or `outer` has no infinity, `inner` has no 1.0, by which a
        partial sum is multiplied to join the total, or the machine of `accumulator` computes no such product.

    Examples
    --------
    >>> from golden import BF16, FP32
    >>> reduction = Reduction(BF16, 32, FP32, operand=BF16, rounding="up")
    >>> str(reduction)
    'operand=bfloat16 inner=bfloat16 chunk=32 outer=float32 rounding=up'
    >>> Reduction.parse(str(reduction)) == reduction
    True
    """

    inner: FloatFormat
    chunk: int | None
    outer: FloatFormat
    operand: FloatFormat | None
    out: FloatFormat | None
    rounding: Rounding
    out_rounding: Rounding
    random: Randomness | None
    accumulator: Machine | None
    subnormals: str = "keep"  # also of what was pickled before there was a choice
    #: As `str` gives it, once it has: every product of PyTorch's tensors asks for it.
    _line: str | None = field(default=None, init=False, repr=False, compare=False)

    def __init__(
        self,
        inner: FloatFormat = FP32,
        chunk: int | None = None,
        outer: FloatFormat = FP32,
        operand: FloatFormat | None = None,
        out: FloatFormat | None = None,
        rounding: Rounding | str = _NEAREST_EVEN,
        out_rounding: Rounding | str = _NEAREST_EVEN,
        random: Randomness | None = None,
        accumulator: Machine | None = None,
        subnormals: str = "keep",
    ) -> None:
        # Names of modes are accepted, and a reduction has the modes themselves.
        modes = as_rounding(rounding, "rounding"), as_rounding(out_rounding, "out_rounding")
        if not isinstance(random, Randomness | None):
            raise TypeError(f"random: got {random!r}, must be a golden.Randomness or None")
        if isinstance(accumulator, Machine) and inner == outer == FP32:
            inner = outer = accumulator.outer
        vars(self).update(
            inner=inner,
            chunk=chunk,
            outer=outer,
            operand=operand,
            out=out,
            rounding=modes[0],
            out_rounding=modes[1],
            random=(random or Randomness()) if Rounding.STOCHASTIC in modes else None,
            accumulator=accumulator,
            subnormals=as_subnormals(subnormals, "subnormals"),
        )
        self._check()

    def _check(self) -> None:
        for argument in ("inner", "outer", "operand", "out"):
            given = getattr(self, argument)
            if given is None and argument in ("operand", "out"):
                continue
            if not isinstance(given, FloatFormat):
                raise TypeError(f"{argument}: got {given!r}, must be a FloatFormat{_by_its_name(given)}")
            if argument in ("inner", "outer") and not given.has_inf:
                raise ValueError(
                    f"{argument}: got {given} (specials {given.specials!r}), must have specials 'ieee' to accumulate in"
                )
        _as_chunk(self.chunk)
        if not self.inner.has_one:
            raise ValueError(f"inner: got {self.inner} with bias {self.inner.bias}, must have 1.0 as a normal value")
        if not isinstance(self.accumulator, Machine | None):
            raise TypeError(f"accumulator: got {self.accumulator!r}, must be one of golden.accumulators, or None")
        if self.accumulator is not None:
            if not (self.inner == self.outer == self.accumulator.outer and self.chunk is None):
                given = f"{self.inner}, {self.chunk}, {self.outer}"
                raise ValueError(f"inner, chunk, outer: got {given}, must be left out beside an accumulator")
            self.accumulator.refuse(rounding=self.rounding, flushes=self.flushes)
            if self.operand is not None:
                self.accumulator.check_operand(self.operand)

    def __hash__(self) -> int:
        known = vars(self).get("_hash")
        if known is None:  # of many parts, and asked for in every call
            parts = (self.inner, self.chunk, self.outer, self.operand, self.out, self.rounding, self.out_rounding)
            known = vars(self)["_hash"] = hash((*parts, self.random, self.accumulator, self.subnormals))
        return int(known)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_hash"}  # it differs between processes

    @property
    def is_chain(self) -> bool:
        """Whether the total is itself the chain of fp32 steps, started from the initial value (level 0)."""
        return self.inner == self.outer == FP32 and self.chunk is None and self.accumulator is None

    @property
    def is_nearest_even(self) -> bool:
        """Whether everything is rounded to nearest, ties to even."""
        return self.rounding is self.out_rounding is _NEAREST_EVEN

    @cached_property
    def flushes(self) -> bool:
        """Whether subnormal operands and results become zeros of their sign (NUMERICS section 12)."""
        return self.subnormals == "flush"

    @cached_property
    def factors(self) -> FloatFormat:
        """The format of the factors.

        Raises
        ------
        ValueError
            If the reduction leaves it open.
        """
        if self.operand is None:
            raise ValueError(f"operand: got None in the reduction {self}, must be a FloatFormat")
        return self.operand

    @cached_property
    def result(self) -> FloatFormat:
        """The format of the result: `out`, or else `outer`."""
        return self.outer if self.out is None else self.out

    def with_random(self, random: Randomness) -> Reduction:
        """Return this reduction with other random bits; itself where nothing is rounded stochastically."""
        if self.random is None:
            return self
        other = object.__new__(Reduction)
        line = str(self).partition(f" {_RANDOM}")[0] + _random_text(random)
        vars(other).update(vars(self), random=random, _line=line)
        vars(other).pop("_hash", None)
        return other

    def __str__(self) -> str:
        line = self._line
        if line is None:
            line = vars(self)["_line"] = self._written()
        return line

    def _written(self) -> str:
        words: dict[str, object] = {}
        if self.operand is not None:
            words["operand"] = format_text(self.operand)
        if self.accumulator is None:
            words["inner"], words["chunk"] = format_text(self.inner), "none" if self.chunk is None else self.chunk
            words["outer"] = format_text(self.outer)
        else:
            words["accumulator"] = accumulator_text(self.accumulator)
        if self.out is not None:
            words["out"] = format_text(self.out)
        for argument in ("rounding", "out_rounding"):
            if getattr(self, argument) is not _NEAREST_EVEN:
                words[argument] = getattr(self, argument)
        if self.flushes:
            words["subnormals"] = self.subnormals
        line = " ".join(f"{key}={value}" for key, value in words.items())
        return line if self.random is None else line + _random_text(self.random)

    @classmethod
    def parse(cls, text: str) -> Reduction:
        """Return the reduction that a line of text stands for, which ``str`` has written or a user.

        Parameters
        ----------
        text : str
            Words ``key=value``: ``operand``, ``inner``, ``chunk`` (a number or ``none``), ``outer``, ``out``,
            ``accumulator``, ``rounding``, ``out_rounding``, ``subnormals``, ``random_bits``, ``seed`` and ``call``.
            What is left out has its default. A format is a name, or ``name:exponent_bits:fraction_bits:bias:specials``;
            without subnormals followed by ``:zeros``, or by ``:normal`` (NUMERICS section 13).

        Raises
        ------
        TypeError
            If `text` is not a string.
        ValueError
            If it is no such line.

        Examples
        --------
        >>> Reduction.parse("operand=cbfloat16 inner=cbfloat16 chunk=32 outer=float32").chunk
        32
        """
        if not isinstance(text, str):
            raise TypeError(f"text: got {text!r}, must be a string")
        given: dict[str, Any] = {}
        random: dict[str, int] = {}
        for key, word in words_of(text).items():
            if key not in _WORDS:
                raise ValueError(f"text: got the key {key!r}, must be one of {', '.join(_WORDS)}")
            try:
                value = _WORDS[key](word)
            except ValueError as error:
                raise ValueError(f"text: got {key}={word} ({error})") from None
            (random if key in ("random_bits", "seed", "call") else given)[key] = value
        return cls(**given, random=Randomness(**random) if random else None)

    @classmethod
    def for_level(
        cls,
        level: int,
        operand: FloatFormat,
        *,
        chunk: int | None = DEFAULT_CHUNK,
        inner: FloatFormat | None = None,
    ) -> Reduction:
        """Return the reduction that a precision optimization level stands for.

        Parameters
        ----------
        level : int
            0: one chain of fp32 steps (`chunk` and `inner` have no part in it). 1: the inner format within a chunk,
            fp32 across chunks. 2: the inner format everywhere.
        operand : FloatFormat
            Format of the factors, which decides the inner format; the reduction itself leaves `operand` open.
        chunk : int or None
            Products in a chunk, 32 unless given.
        inner : FloatFormat, optional
            The inner format: that of the operands unless given, cbfloat16 for operands of 8 bits and fewer.

        Raises
        ------
        TypeError
            If `operand` or `inner` is not a format, or `chunk` or `level` not an int.
        ValueError
            If `level` is not 0, 1 or 2, `chunk` is below 1, or the inner format has no infinity or no 1.0.

        Examples
        --------
        >>> from golden import BF16, FLOAT8_E4M3FN
        >>> plan = Reduction.for_level(1, FLOAT8_E4M3FN)
        >>> str(plan.inner), str(plan.outer)
        ('cbfloat16', 'float32')
        >>> str(Reduction.for_level(2, FLOAT8_E4M3FN, inner=BF16).outer)
        'bfloat16'
        """
        if not isinstance(level, int) or isinstance(level, bool):
            raise TypeError(f"level: got {level!r}, must be 0, 1 or 2")
        if level not in LEVELS:
            raise ValueError(
                f"level: got {level}, must be 0 (fp32), 1 (16 bits in a chunk, fp32 across) or 2 (16 bits)"
            )
        if not isinstance(operand, FloatFormat):
            raise TypeError(f"operand: got {operand!r}, must be a FloatFormat{_by_its_name(operand)}")
        if inner is None:
            inner = default_inner(operand)
        if level == 0:
            _as_chunk(chunk)
            return cls(FP32, None, FP32)
        return cls(inner, chunk, inner if level == 2 else FP32)


def _chunk_of(word: str) -> int | None:
    return None if word == "none" else int(word)


#: How the words of a line are read.
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("operand", "inner", "outer", "out"), format_of),
    "chunk": _chunk_of,
    "accumulator": accumulator_of,
    **dict.fromkeys(("rounding", "out_rounding", "subnormals"), str),
    **dict.fromkeys(("random_bits", "seed", "call"), int),
}


class ReductionKeywords(TypedDict, total=False):
    """The keywords of public functions that set the arithmetic of a product."""

    operand: FloatFormat | str | None
    level: int
    chunk: int | None
    reduction: Reduction | Machine | None
    out: FloatFormat | str | None
    rounding: Rounding | str | None
    out_rounding: Rounding | str | None
    seed: int | None
    call: int | None
    random_bits: int | None
    subnormals: str | None


def reduction_of(**keywords: Unpack[ReductionKeywords]) -> Reduction:
    """Return the reduction that the keywords of a public function stand for, with its operand.

    A keyword that is given takes the place of the same part of ``reduction``; only the operand must agree with it.

    Raises
    ------
    TypeError, ValueError
        If a keyword has the wrong type or is out of range, naming it.
    """
    whole = keywords.get("reduction")
    if isinstance(whole, Reduction | Machine):
        _refuse_beside(whole, keywords.get("level", 1), keywords.get("chunk", DEFAULT_CHUNK))
    if isinstance(whole, Reduction) and whole.operand is not None and all(keywords.get(x) is None for x in _PARTS):
        return whole
    try:
        # Presets of equal rules are equal; an error names the one that was given.
        machine = whole.provenance.machine if isinstance(whole, Machine) else None
        return _built(**keywords, machine=machine)
    except TypeError:  # an argument without a hash raises it, too
        return _build(**keywords)


def _refuse_beside(whole: Reduction | Machine, level: int = 1, chunk: int | None = DEFAULT_CHUNK) -> None:
    own = whole.chunk if isinstance(whole, Reduction) else None
    for argument, given, agreed in (("level", level, (1,)), ("chunk", chunk, (DEFAULT_CHUNK, own))):
        if given not in agreed:
            raise ValueError(
                f"{argument}: got {given!r}, must be left out beside reduction={str(whole)!r}; "
                "Reduction.for_level makes a reduction of a level and a chunk"
            )


#: The keywords that change a part of a reduction.
_PARTS = ("operand", "out", "rounding", "out_rounding", "seed", "call", "random_bits", "subnormals")


def _build(
    operand: FloatFormat | str | None = None,
    level: int = 1,
    chunk: int | None = DEFAULT_CHUNK,
    reduction: Reduction | Machine | None = None,
    **others: Any,
) -> Reduction:
    whole = Reduction(accumulator=reduction) if isinstance(reduction, Machine) else reduction
    if not isinstance(whole, Reduction | None):
        raise TypeError(f"reduction: got {reduction!r}, must be a Reduction, one of golden.accumulators, or None")
    known = None if whole is None else whole.operand
    given = known if operand is None and known is not None else as_format(operand, "operand")  # type: ignore[arg-type]
    if known is not None and given != known:
        raise ValueError(f"operand: got {given}, must be {known} as in the reduction, or left out")
    if whole is None:
        whole = Reduction.for_level(level, given, chunk=chunk)
    parts: dict[str, Any] = {
        **{name: getattr(whole, name) for name in ("inner", "chunk", "outer", "out", "rounding", "out_rounding")},
        "accumulator": whole.accumulator,
        "subnormals": whole.subnormals if others.get("subnormals") is None else others["subnormals"],
    }
    if others.get("out") is not None:
        parts["out"] = as_format(others["out"], "out")
    for argument in ("rounding", "out_rounding"):
        if others.get(argument) is not None:
            parts[argument] = as_rounding(others[argument], argument)
    random = vars(whole.random or Randomness()) | {
        name: others[name] for name in ("random_bits", "seed", "call") if others.get(name) is not None
    }
    return Reduction(**parts, operand=given, random=Randomness(**random))


# By type as well: a bool, or an int of NumPy's, equals an int that is allowed.
_built = lru_cache(maxsize=1024, typed=True)(_build)
