"""Why a survivor survives: for each file, a pattern of its line, one of the change, and the reason."""

from __future__ import annotations

import re

from .fault import ROOT, Fault

SPEED = "speed only: how the work is cut, or which of several exact ways is taken"
COMMUTES = "equivalent: the two operands may be exchanged"
OVERWRITTEN = "equivalent: what is written too much lies in spare room or is written again"
ELSEWHERE = "seen elsewhere: tests/golden/kernels/"
GENERIC = "speed only: the generic path serves, to the same bits"
WATCHED = "speed only: tiny sums are watched for where there are none"
BOUND = "speed only: a bound that is larger than it need be"
_CUTS = (
    r"\b((SINGLE_|SCALED_|REGION_|COUNTED_|REPEATED_)?ROWS|VECTORS|REGION_COLUMNS|COUNTED_COLUMNS|REPEATED_STEPS|HALF_BLOCK|"
    r"STEPS_PER_THREAD|PRODUCTS_PER_THREAD|SEGMENT|KEPT_BYTES) = |^_SECONDS_PER_.* = "
)

_REASONS = (
    ("", _CUTS, r"^[\d.e-]+ -> |<<  ->| \* | \+ ", SPEED),
    ("generic_counts.h", "GENERIC_CHAINS|chains.GENERIC_ROWS", "1 -> 2|2 -> 3", "equivalent: a row that nobody reads"),
    ("rule.h", "uint32_t key", "2 -> 3", "equivalent: more room than is used"),
    ("", r"step\(factor|rounded\(a, b|multiply_add|fmadd|Words both|Words add\(|Words either", r"^(\w+), ", COMMUTES),
    ("lanes256.h", "xor_pd", "^high, sign", COMMUTES),
    ("accumulate.cpp", "memset.memory", "0 -> 1", "equivalent: results of idle lanes are thrown away"),
    ("accumulate.cpp", "release_above", ".*", "speed only: how much memory a thread keeps"),
    ("accumulate.cpp", "if ..path. return 2", "2 -> ", "never asked: a path that is not compiled is none of `paths()`"),
    ("accumulate.cpp", "if .used", "true", "equivalent: packing nothing writes nothing"),
    ("accumulate_lanes.h", "exponent_of", "true", "speed only: exponents that nobody reads"),
    ("accumulate_lanes.h", "step, first, -1", "1 -> 2", "equivalent: any negative number stands for no total"),
    ("accumulate_lanes.h", "total >= 0", "0 -> 1", "equivalent: the total is never the first of its terms"),
    ("accumulate_lanes.h", "value.MOST_PRODUCTS", "1 -> 2", "equivalent: more room than any rule takes"),
    ("accumulate_lanes.h", "total_reach >= 0", "0 -> 1", "equivalent: a reach is at least 1"),
    ("philox.h", "words.PHILOX_ROUNDS", "2 -> 3", "equivalent: more room than is used"),
    ("scratch.h", "bytes > size_|size_ <= bytes", ".*", "speed only: when memory is taken anew"),
    ("call.h", "uneven", ".*", SPEED),
    ("arrays.cpp", "Environment environment", "Rounding", "equivalent: changed before anything is rounded"),
    ("environment.h", "!= current_", "true", "speed only: the register is written again with what it holds"),
    ("avx512fp16.cpp", "extended.*half", ";", "speed only: float16 runs without native steps, to the same bits"),
    ("format.h", "other.exponent_bits", "==", ELSEWHERE + "test_native_half.py, formats beside float16"),
    ("steps.h", "field < lowest_", "<=", "equivalent: both choices are the same there"),
    ("generic_steps.h", "HIGHEST = ", "300 -> 30|1023 -> 1024", "equivalent: either sum is beyond every format"),
    ("pack.h", r"int k = 0; k < 4", "4 -> 5", OVERWRITTEN),
    ("pack.h", "lanes < width", "false", "equivalent: results of idle lanes are thrown away"),
    ("pack.h", r"__m128 row", "4 -> 5", "equivalent: a row that nobody uses"),
    ("pack.h", "lanes < width", "true", "speed only: zeros are written before values take their places"),
    ("paths.cpp", "__builtin_cpu", ".*", "equivalent on a processor that has all of it"),
    ("wide_steps.h", "round < PHILOX_ROUNDS;", "<=", OVERWRITTEN),
    ("path.h", "fast && ", r"&&", SPEED),
    ("plan.cpp", "return exponent == 0", "true", GENERIC),
    ("plan.cpp", "total_exponent >= -126", ".*", "equivalent: a format that float32 holds has a scale of -126 to 22"),
    ("plan.cpp", "join_exponent < -126", "127 -> 126", SPEED),
    ("plan.cpp", "b_exponent < 0", "0 -> 1", "equivalent: at 1 the way down goes on to 0"),
    ("plan.h", "!\\(bound", ".*", "equivalent: half an ulp of room above the limit (plan.h says why)"),
    ("pool.cpp", "places_ = 0", ".*", ELSEWHERE + "test_sanitizers.py, a helper that enters late"),
    ("pool.cpp", "take_pieces", "-> ;", "speed only: the caller does the pieces that helpers leave"),
    ("pool.cpp", "in_use.test_and_set", ".*", ELSEWHERE + "test_sanitizers.py, two callers at once"),
    ("pool.cpp", "the_pool", ".*", "speed only: helpers that find no piece go to sleep again"),
    ("product.cpp", "environment_.Rounding", ".*", "equivalent: changed before anything is rounded"),
    ("product.cpp", "keeps_partial_", ".*", SPEED),
    ("product.cpp", "MOST_SUMS = ", "1024 -> ", "equivalent: more room than is used"),
    ("product.cpp", "double bound_ = 0", ".*", "equivalent: set before it is read"),
    ("product.cpp", "depth = std::min", ".*", "equivalent: more memory than is used"),
    ("product.cpp", "memcpy.to, raw_", "2 -> 3", OVERWRITTEN),
    ("", "served is not None", ".*", "speed only: NumPy gives the same bits"),
    ("generic_mode_steps.h", "DBL_MAX", "<", "equivalent: a sum of float32 values is far below the largest double"),
    ("generic_modes.h", "i < count; i .= GENERIC", "<=", "equivalent: one round more has no columns"),
    ("pack.h", "lanes < width. std::memset", "<=", "speed only: zeros are written before values take their places"),
    ("pack.h", "lanes < width. std::memset", "0 -> 1|\\* -> \\+", "equivalent: results of idle lanes are thrown away"),
    ("plan.cpp", "format.is_short", "true|^! -> ", GENERIC),
    ("plan.cpp", "b_exponent .= b_exponent", "1 -> 2", "speed only: every share of the scale is exact"),
    ("plan.cpp", "factor <= 127", "<", GENERIC),
    ("plan.cpp", "else if .inner.is_short", "false", GENERIC),
    ("plan.cpp", "count@ . @ulp", "->", BOUND),
    ("plan.cpp", "start . 2 . count", "2 -> 3", BOUND),
    ("generic.h", "bits_of.values.i.. & 0x7FFFFFFF;", "&", BOUND),
    ("plan.cpp", "smallest_without_tiny = ", "1.0 -> 2.0|1 -> 2|2 -> 3", WATCHED),
    ("plan.h", "has_tiny_products", "<=", WATCHED),
    ("call.h", "rows_longer . down", "&&", SPEED),
    ("call.h", "else if .across < column_panels", "<=", SPEED),
    ("counting.h", "slot_of_.assign", "1 -> 2", "equivalent: any negative number stands for no slot"),
    ("counting.h", "lock.lock", "false", ELSEWHERE + "test_sanitizers.py, a count that two threads change"),
    ("counting_tiles.h", "kinds.scaled = ", "-> ;", GENERIC),
    ("generic.h", r"column < GENERIC_COLUMNS; column\+\+.$", "<=", "equivalent: the next row is not used"),
    ("counting_steps.h", "511", "511 -> 51", "equivalent: sums of float32 values lie between either format's ends"),
    ("half_codes.h", "FROUND_TO_NEAREST_INT", "&", "equivalent: to nearest is 0, and exceptions are masked"),
    ("half_counts.h", "columns - column > Halves::COUNT", "true", "speed only: lanes of zeros, which are no event"),
    ("vectors.h", "generic_smallest.count - i", "-", WATCHED),
    ("wide_loops.h", "random_steps<Step>.1, USED, true", "1 -> 2", "equivalent: a row that nobody reads"),
    ("wide_steps.h", "int i = 0; i < 2", "<=", OVERWRITTEN),
    ("wide_steps.h", "wide_keys_.PHILOX_ROUNDS..2.;", "2 -> 3", "equivalent: more room than is used"),
    ("vector_modes.h", "add_counts.path", "-> ;", GENERIC),
    ("vector_counts.h", "count.a, b, acc", "^a, b -> b, a", COMMUTES),
    ("vector_counts.h", "if .is_full.$", "true", "speed only: lanes of zeros, which are no event"),
    ("lanes512.h", "cmpeq|_mm512_range_ps", "^x, y -> y, x", COMMUTES),
    ("accumulate_lanes.h", "!rule_.stages", "^! -> ", "equivalent: what joins a block without stages does not ask"),
    ("avx512.cpp", "path_with_modes", "down", "equivalent: instructions that round to odd bring their rounding along"),
    ("product.cpp", "Mode::stochastic. return rule", "false", "speed only: a place that nobody reads"),
    ("product.cpp", "region.m0 == region.m1", "false", "equivalent: nothing is done in an empty region"),
    ("scratch.h", "size_ = 0", "0 -> 1", "equivalent: nobody asks for a single byte"),
    ("vector_modes.h", "random.single = random.scaled", ";", GENERIC),
    ("vectors.h", "i == count", "false", "equivalent: nothing is left over"),
    ("accumulate_lanes.h", "inexact & 1", "1 -> 2", "equivalent: either bit is below all that a rounding looks at"),
    ("accumulate_lanes.h", "total < 0", "<=|0 -> 1", "equivalent: the total is never the first of its terms"),
    ("accumulate_lanes.h", "field < rule.operand_emin", "<=", "equivalent: both choices are the same there"),
    ("accumulate_lanes.h", "stride > 1", "1 -> 2", "equivalent: a stride is 1, or that of all lanes"),
    ("counting.h", "kinds_ = is_chain", "1 -> 2", "equivalent: the promotions of a chain are none, and add 0"),
    ("counting.h", "bytes = kinds_", "1 -> 2", "equivalent: more memory than is used"),
    ("generic_steps.h", "field > HIGHEST", ">=", "equivalent: both choices are the same there"),
    ("kernels.h", "CBFLOAT_AVX512FP16", "3 -> ", ELSEWHERE + "test_library.py, the numbers of the paths"),
    ("pack.h", "k1 - k0 == LINE", r"\+", SPEED),
    ("plan.cpp", "inner@ == @Format|@15@", "!=|15 -> ", ELSEWHERE + "test_native_half.py, other formats"),
    ("plan.cpp", "halves = true", "-> ;", ELSEWHERE + "test_native_half.py"),
    ("plan.h", "has_tiny_products", "2 -> 3", WATCHED),
    ("product.cpp", "to_halves.size", "-> ;", ELSEWHERE + "test_native_half.py"),
    ("product.cpp", "rows = plan_.dot . @1@", "1 -> 2", "equivalent: a row that nobody reads"),
    ("product.cpp", "rounding->steps : 0", "0 -> 1", "equivalent: where no mode is given, any will do"),
    ("product.cpp", "mode >= MODES", "false", ELSEWHERE + "test_c_interface.py, modes that there are not"),
    ("", "1 . steps / STEPS_PER_THREAD", ".*", SPEED),
    ("vectors.h", "join_vector.values", "<", "speed only: the last vector is done one by one"),
    ("windows.cpp", r"end@ - @begin\); phase", r"\+", "equivalent: a phase without elements writes nothing"),
    ("windows.cpp", r"padded_\[axis\] = .*@ - @1", r"\+", "equivalent: a plane with more room than is read"),
    ("windows.cpp", "release_above", ".*", "speed only: how much memory a thread keeps"),
    (".py", r"\b(max|min)\(", r"^(max|min)\((?!.* if ).* -> \((max|min)\(", COMMUTES),
    (".py", "strict=True", "True -> .False", "equivalent: both are of one length"),
    (".py", r"reshape\(.*-1", "^1 -> ", "equivalent: NumPy takes any negative number for the length that is left"),
    ("arrays/chain.py", "mode is Rounding.NEAREST_EVEN", "False", "speed only: the same choice, made anew"),
    ("arrays/normalisation.py", "estimate . factor", ".*", "equivalent where the host's exp is right"),
    ("arrays/normalisation.py", "np.full.1 << fmt.width", "1 -> ", "equivalent: more room than is used"),
    ("arrays/rounding.py", "suspects = inexact", "<=", "equivalent: the smallest normal value itself is exact"),
    ("arrays/tables.py", "serves = ", ".*", "speed only: without a table every number is rounded"),
    ("functions/attention.py", "scores.shape.-2:", "2 -> ", "equivalent: the same mask for every matrix of a batch"),
    ("report/records.py", "level: int = 0", "0 -> ", "equivalent: the line that makes a layer sets its level"),
    ("report/reading.py", "file.read.1", "1 -> ", "equivalent: whether anything is left"),
    ("golden/counts.py", "y > x", ">=", "equivalent: the difference is 0"),
    ("kernels/counting.py", "if rows is not None", "True", "equivalent: a mask of all rows"),
    ("kernels/products.py", "operand.data", "0 -> ", "equivalent: of indexed operands nobody reads a stride"),
    ("kernels/products.py", "if active.. is None", "False", "equivalent: what follows asks the same"),
    ("mx/products.py", r"_reduce\(x, y", "y, x", COMMUTES),
    ("mx/products.py", "wide = carrier", ".*", "speed only: NumPy adds the same steps"),
    ("golden/reference.py", "number < -1000", "1000 -> ", "equivalent: both are far below the smallest subnormal"),
    ("golden/exact.py", "magnitude = -number", "<=", "equivalent: nothing less is 0"),
    ("golden/exact_steps.py", "max.len.a., 1", "1 -> ", "equivalent: the one chunk of a sum without products is empty"),
    ("golden/reference.py", "decimal.Context", ".*", "equivalent: no exponent comes near the limit"),
    ("golden/reference.py", "slack = ", "1 -> |2000 -> ", "speed only: a doubt that is larger asks for more digits"),
    ("kernels/library.py", "sched_getaffinity", "False", "equivalent where a process may use all processors"),
    ("arrays/chain.py", "max.length, 1", "^1 -> ", "equivalent: a chunk longer than the sum ends with it"),
    ("arrays/checks.py", "numpy.ma. not in sys.modules", "False", "speed only: numpy.ma is imported to say the same"),
    ("arrays/checks.py", "len.set.shapes.. == 1", "False", "speed only: NumPy's rule gives the same shape"),
    ("arrays/checks.py", "^ {4}return given.astype.np.float32, copy=.{6}$", "True", "speed only: a copy that is read"),
    ("arrays/choices.py", "if words.size", "if words.size .* -> ..words", "equivalent: of no words none is outside"),
    ("arrays/fused_sums.py", "lost < 0. != .total < 0", "total <=", "equivalent: a sum of 0 loses nothing"),
    ("arrays/grouped_sums.py", "rows = max.1", "^1 -> ", SPEED),
    ("arrays/grouped_sums.py", "total, 0.0", "0.0 -> ", "equivalent: a total that is not finite is the result"),
    ("arrays/normalisation.py", "has_one: .* to subtract", "True", "equivalent: both ways round the exact sum once"),
    ("arrays/other_machines.py", "_run.x, y", "^_run.x, y, .* -> ._run.y, x", COMMUTES),
    ("arrays/rounding.py", "overflow = finite", ">=", "equivalent: the largest value rounds to itself"),
    ("golden/cli.py", "context = Context", "^6 -> ", "equivalent: no exponent comes near the limit"),
    ("explanation_plot.py", "metadata=", r"-> \({.Date", "equivalent: matplotlib leaves out what is None"),
    ("identification/climb.py", "if found.share < 1.0:  ", "True", "speed only: nothing beats what computes all"),
    ("identification/climb.py", "^ {12}if best.share == 1.0:", "False", "speed only: nothing beats what computes all"),
    (".py", r"random\.random\(\) < 0", "<=", "equivalent: a random number is never just that"),
    ("kernels/library.py", "isdecimal", ".*", ELSEWHERE + "test_environment.py, in a process of its own"),
)  # fmt: skip


def reason_of(fault: Fault) -> str:
    """Return why it may survive, or nothing if that is open."""
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    line = text.splitlines()[fault.line - 1]
    # The place stands between @ and @, for patterns that fit several places of the line.
    marked = f"{text[: fault.start]}@{fault.old}@{text[fault.start + len(fault.old) :]}".splitlines()[fault.line - 1]
    for file, place, change, reason in _REASONS:
        if (
            fault.file.endswith(file)
            and (re.search(place, line) or re.search(place, marked))
            and re.search(change, f"{fault.old} -> {fault.new}")
            and (reason != COMMUTES or fault.kind == "operands")
        ):
            return reason
    return ""
