"""Arrays rounded to a format or to blocks, and softmax in a format of 16 bits, on a card: the launches of kernels."""

from __future__ import annotations

from golden.cuda.plan import COMMON, THREADS, Launch
from golden.cuda.structures import Blocks, Elementwise, Softmax, target
from golden.formats import FloatFormat
from golden.philox import FINAL_CONVERSION
from golden.reduction import Reduction
from golden.rounding import Randomness

__all__ = ["LARGEST_SOFTMAX_WIDTH", "blocks_launch", "rounding_launch", "softmax_launch"]

# Values and rows of a block, as elementwise.h and softmax.h define them.
_VALUES, _ROWS = 4096, 64

_PER_LANE = 4  # values of a block that a thread has, in blocks that are not too large

#: The widest format for which there is a table of exponentials.
LARGEST_SOFTMAX_WIDTH = 16


def rounding_launch(
    values: int,
    result: int,
    count: int,
    memories: tuple[int, int],
    conversion: Reduction,
    *,
    first_index: int = 0,
    step: int = FINAL_CONVERSION,
) -> Launch:
    """Return the launch that rounds contiguous values once to a format.

    Parameters
    ----------
    values, result : int
        Addresses on the card; they may be the same if the memories are.
    count : int
        At least 1.
    memories : pair of int
        Of the values and of the result: `golden.cuda.plan.FLOAT32`, `FLOAT16` or `BFLOAT16`. The rounded values are
        rounded once more, to nearest even, where the memory of the result does not hold them.
    conversion : Reduction
        Its `out`, of any special codes, its `out_rounding`, and where that is stochastic its random bits. A value that
        is too large becomes what NUMERICS section 8 says of ``"special"``.
    first_index : int
        Output index of the first value, for random bits.
    step : int
        The step that the random bits are of, a final conversion unless given.
    """
    random = conversion.random or Randomness()
    key = random.seed & 0xFFFFFFFF, random.seed >> 32
    fields = Elementwise(
        values, result, count, *memories, target(conversion.result), conversion.out_rounding.value, key,
        random.call, random.random_bits, first_index & 0xFFFFFFFF, step,
    )  # fmt: skip
    return Launch(COMMON, "round_values", -(-count // _VALUES), bytes(fields))


def blocks_launch(
    values: int, result: int, rows: int, length: int, block: int, memory: int, element: FloatFormat
) -> Launch:
    """Return the launch that rounds contiguous rows to blocks of elements with one scale each, and back.

    The results equal ``golden.mx.dequantize(*golden.mx.quantize(x))`` of the rows, each padded with zeros.

    Parameters
    ----------
    values, result : int
        Addresses on the card.
    rows, length : int
        At least 1.
    block : int
        Values that share a scale, at least 1; the last block of a row may have fewer.
    memory : int
        As of `rounding_launch`, of the values and of the results, which are rounded once more where it does not hold
        them.
    element : FloatFormat
        Format of the elements.
    """
    block = min(block, length)
    blocks = rows * -(-length // block)
    lanes = min(THREADS, 1 << max(0, -(-block // _PER_LANE) - 1).bit_length())
    fields = Blocks(values, result, length, block, blocks, memory, target(element), element.emax, lanes)
    return Launch(COMMON, "round_blocks", -(-blocks * lanes // THREADS), bytes(fields))


def softmax_launch(
    values: int,
    result: int,
    exponentials: int,
    rows: int,
    length: int,
    memories: tuple[int, int],
    fmt: FloatFormat,
) -> Launch:
    """Return the launch that takes the softmax of each contiguous row of values, after rounding them to a format.

    Parameters
    ----------
    values, result : int
        Addresses on the card.
    exponentials : int
        Address of a float32 table on the card: exp, rounded to the format, of the values of the codes of -0, the
        smallest negative value and so on to -infinity.
    rows, length : int
        At least 1.
    memories : pair of int
        As of `rounding_launch`.
    fmt : FloatFormat
        A format with infinities of at most `LARGEST_SOFTMAX_WIDTH` bits.

    Raises
    ------
    ValueError
        If the format is another, or its smallest normal value is above 1.
    """
    if not fmt.has_inf or fmt.width > LARGEST_SOFTMAX_WIDTH or fmt.emin > 0:
        raise ValueError(
            f"fmt: got {fmt}, must have infinities (specials 'ieee'), at most {LARGEST_SOFTMAX_WIDTH} bits and a "
            "smallest normal value of at most 1"
        )
    fields = Softmax(values, result, exponentials, rows, length, *memories, target(fmt))
    return Launch(COMMON, "softmax16", -(-rows // _ROWS), bytes(fields))
