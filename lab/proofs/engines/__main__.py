"""Entry of ``python -m lab.proofs.engines ENGINE FILE MEBIBYTES SECONDS``: decide one formula and say so in JSON.

After SECONDS of processor time the process ends by SIGXCPU."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

from lab.netlists.errors import ToolError
from lab.proofs.engines.limits import limit_processor_time


def _main(engine: str, file: str, mebibytes: str, seconds: str) -> int:
    limit = int(mebibytes) << 20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit_processor_time(int(seconds))
    text = Path(file).read_text(encoding="utf-8")
    try:
        if engine == "z3+cadical":
            from lab.proofs.engines import z3_cadical

            answer, model = z3_cadical.decide(text, Path(file).with_suffix(".cnf"))
        elif engine == "bitwuzla":
            from lab.proofs.engines import bitwuzla_api

            answer, model = bitwuzla_api.decide(text)
        elif engine == "cvc5":
            from lab.proofs.engines import cvc5_api

            answer, model = cvc5_api.decide(text)
        else:
            raise ToolError(f"engine: got {engine!r}, must be z3+cadical, bitwuzla or cvc5")
    except ToolError as error:
        print(json.dumps({"error": str(error)}))
        return 3
    except (MemoryError, ImportError, OSError) as error:
        # A library that runs out of memory fails in the same way as one that is missing.
        print(json.dumps({"error": f"{engine}: {error or 'out of memory'} (within {mebibytes} MiB)"}))
        return 3
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    took = sum(usage.ru_utime + usage.ru_stime for usage in used)
    print(json.dumps({"answer": answer, "model": model, "seconds": took}))
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
