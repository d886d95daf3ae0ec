"""``python -m lab.proofs.text FOLDER FILE ID``: the formula of a proof about the `hdl` that Python finds first.

It prints where that `hdl` lies, so that the caller knows which one it was.
"""

from __future__ import annotations

import sys
from pathlib import Path

import hdl
from lab.proofs.catalogue import proofs


def _main(folder: str, file: str, id: str) -> None:
    (proof,) = (proof for proof in proofs() if proof.id == id)
    Path(file).write_text(proof.build(Path(folder)), encoding="utf-8")
    print(Path(hdl.__file__).resolve().parent)


if __name__ == "__main__":
    _main(*sys.argv[1:])
