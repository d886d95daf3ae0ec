"""Kernels compiled for a card by NVRTC, at first use, and kept on disk.

No card and no driver is needed to compile.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import threading
from functools import cache
from pathlib import Path
from typing import Any

from golden.cuda.cache import Cubin, Resources, cache_folder, read, write
from golden.cuda.scales import Steps
from golden.cuda.variants import defines, name_of, oldest_architecture
from golden.kernels.library import NAMES

__all__ = [
    "ARCHITECTURES",
    "FOLDERS",
    "Cubin",
    "Resources",
    "architecture_for",
    "assembled",
    "cache_folder",
    "compiled",
    "cubin",
    "nvrtc_version",
    "ptx",
    "resources_in",
    "sources",
]

#: Architectures that are compiled for and tested; each also serves later ones of the same major number.
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)

#: Of kernels.cu and its headers.
FOLDERS = Path(__file__).parent / "source", Path(__file__).parents[1] / "kernels" / "source"
_ROOT = "kernels.cu"
_OPTIONS = (
    "-std=c++17",
    "--device-as-default-execution-space",
    # Products and sums are fused, and subnormals flushed, where the source says so and nowhere else.
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--ptxas-options=-v",
    f'-DCBFLOAT_NAMES_OF_GOLDEN="{NAMES}"',
)
# The declarations that the sources need from the standard headers, which NVRTC does not have.
_STANDARD = {
    "cstdint": """#pragma once
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;
""",
    "stdint.h": "#include <cstdint>\n",
    "cstring": "#pragma once\nnamespace std { using ::memcpy; }\n",
    "cmath": """#pragma once
namespace std { using ::isinf; using ::trunc; using ::floor; using ::fabs; using ::copysign; }
""",
    "cfloat": "#pragma once\n#define FLT_MAX 0x1.fffffep127f\n#define DBL_MAX 0x1.fffffffffffffp1023\n",
}
_PATIENCE = 2.0  # seconds without a word


def architecture_for(capability: tuple[int, int]) -> int:
    """Return the architecture of `ARCHITECTURES` that a card of a compute capability runs.

    Raises
    ------
    RuntimeError
        If there is none.
    """
    major, minor = capability
    fitting = [number for number in ARCHITECTURES if number // 10 == major and number % 10 <= minor]
    if not fitting:
        oldest = {number // 10: number % 10 for number in reversed(ARCHITECTURES)}
        known = ", ".join(f"{family}.{first or 'x'}" for family, first in sorted(oldest.items()))
        raise RuntimeError(
            f"device: got compute capability {major}.{minor}, must be one of {known}; move the tensors to the CPU with "
            ".to('cpu')"
        )
    return fitting[-1]


def sources() -> dict[str, str]:
    """Return the text of kernels.cu and of every header that it reaches, by name."""
    found: dict[str, str] = {}
    waiting = [_ROOT]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        file = next(folder / name for folder in FOLDERS if (folder / name).is_file())
        found[name] = file.read_text(encoding="utf-8")
        waiting += re.findall(r'^#include "([^"]+)"', found[name], re.M)
    return dict(sorted(found.items()))


def cubin(variant: Steps | None, architecture: int) -> bytes:
    """Return the image that the driver loads for a variant; see `compiled`."""
    return compiled(variant, architecture).image


@cache
def compiled(variant: Steps | None, architecture: int) -> Cubin:
    """Return a variant compiled for an architecture: from the cache on disk, or compiled now and put there.

    Parameters
    ----------
    variant : Steps, optional
        None stands for the kernels that every product shares.
    architecture : int
        One of `ARCHITECTURES`, such as 90 for ``sm_90``.

    Raises
    ------
    ImportError
        If cuda-bindings or NVRTC is not installed.
    RuntimeError
        If the compiler fails.
    """
    if architecture not in ARCHITECTURES:
        raise ValueError(f"architecture: got {architecture}, must be one of {', '.join(map(str, ARCHITECTURES))}")
    if oldest_architecture(variant) > architecture:
        raise ValueError(
            f"architecture: got {architecture} for {name_of(variant)}, must be at least {oldest_architecture(variant)}"
        )
    nvrtc, version = _nvrtc()
    options = [f"--gpu-architecture=sm_{architecture}", *_OPTIONS, *defines(variant)]
    given = sources()
    told = json.dumps([version, options, given, _STANDARD])
    key = hashlib.sha256(told.encode()).hexdigest()
    file = cache_folder() / f"{name_of(variant)}-sm_{architecture}-{key[:24]}"
    found = read(file)
    if found is None:
        image, log = _compile(nvrtc, name_of(variant), architecture, options, given)
        found = Cubin(image, resources_in(log))
        write(file, found)
    return found


@cache
def _nvrtc() -> tuple[Any, list[int]]:
    """Return NVRTC's functions and its version."""
    try:
        from cuda.bindings import nvrtc

        code, *version = nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:  # the second where the bindings find no library
        raise ImportError(
            "kernels for CUDA devices are compiled by NVRTC, which is not installed; install it with "
            "pip install 'cbfloat[cuda]', or move the tensors to the CPU with .to('cpu')"
        ) from error
    _check(code, "nvrtcVersion")
    return nvrtc, version


def nvrtc_version() -> str | None:
    """Return the version of the compiler, such as ``"13.0"``; None if it is not installed."""
    try:
        return ".".join(map(str, _nvrtc()[1]))
    except ImportError:
        return None


def _check(code: Any, function: str) -> None:
    if int(code):
        raise RuntimeError(f"NVRTC: {function} failed with {code.name}")


def ptx(variant: Steps | None, architecture: int, *options: str) -> str:
    """Return the instructions of a variant as the compiler's first half has them, for those who want to read them.

    Parameters
    ----------
    variant : Steps, optional
    architecture : int
        One of `ARCHITECTURES`.
    options : str
        More options of NVRTC.
    """
    nvrtc, _ = _nvrtc()
    told = [f"--gpu-architecture=compute_{architecture}", *_OPTIONS, *defines(variant), *options]
    return _compile(nvrtc, name_of(variant), architecture, told, sources(), "PTX")[0].decode().rstrip("\0")


def assembled(kernels: str, architecture: int, options: list[str]) -> bytes:
    """Return kernels of another source over the same headers, compiled for an architecture; nothing is kept."""
    nvrtc, _ = _nvrtc()
    told = [f"--gpu-architecture=sm_{architecture}", *_OPTIONS, *options]
    return _compile(nvrtc, "of another source", architecture, told, {**sources(), _ROOT: kernels})[0]


def _compile(
    nvrtc: Any, name: str, architecture: int, options: list[str], given: dict[str, str], what: str = "CUBIN"
) -> tuple[bytes, str]:
    """Return the compiled code of type `what`, and the log."""
    headers = {**_STANDARD, **{file: text for file, text in given.items() if file != _ROOT}}
    code, program = nvrtc.nvrtcCreateProgram(
        given[_ROOT].encode(),
        _ROOT.encode(),
        len(headers),
        [text.encode() for text in headers.values()],
        [file.encode() for file in headers],
    )
    _check(code, "nvrtcCreateProgram")
    told = threading.Timer(_PATIENCE, _tell, (name, architecture))
    told.daemon = True
    told.start()
    try:
        (failed,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        log = _text(nvrtc, "ProgramLog", program).decode(errors="replace").rstrip("\0\n ")
        if int(failed):
            raise RuntimeError(f"NVRTC: {name} for sm_{architecture} does not compile ({failed.name}):\n{log}")
        return _text(nvrtc, what, program), log
    finally:
        told.cancel()
        nvrtc.nvrtcDestroyProgram(program)


def _tell(name: str, architecture: int) -> None:
    print(f"cbfloat: compiling kernels {name} for sm_{architecture}, once ...", file=sys.stderr, flush=True)


def _text(nvrtc: Any, what: str, program: Any) -> bytes:
    code, size = getattr(nvrtc, f"nvrtcGet{what}Size")(program)
    _check(code, f"nvrtcGet{what}Size")
    text = bytearray(size)
    (code,) = getattr(nvrtc, f"nvrtcGet{what}")(program, text)
    _check(code, f"nvrtcGet{what}")
    return bytes(text)


_FUNCTION = re.compile(r"Compiling entry function '(\w+)'(.*?)(?=Compiling entry function|\Z)", re.S)


def resources_in(log: str) -> dict[str, Resources]:
    """Read the resources of each kernel from the assembler's log."""

    def number(pattern: str, text: str) -> int:
        return sum(int(found) for found in re.findall(pattern, text))

    return {
        name: Resources(
            number(r"Used (\d+) registers", text),
            number(r"(\d+) bytes spill (?:stores|loads)", text),
            number(r"(\d+) bytes stack frame", text),
            number(r"(\d+) bytes smem", text),
        )
        for name, text in _FUNCTION.findall(log)
    }
