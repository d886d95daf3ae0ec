"""A fault put into a module that is imported already: its functions get the faulty source's code."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType

Pair = tuple[CodeType, CodeType]


class AtImportError(Exception):
    """The fault is in code that runs while the module is imported."""


def pairs(old: CodeType, new: CodeType) -> list[Pair]:
    """Return the functions' code that differs, right and faulty, the outer functions first.

    Parameters
    ----------
    old, new : code
        Of a module.

    Raises
    ------
    AtImportError
        If the module's own code differs, or the code of a class.
    """
    return list(_pairs(old, new))


def _pairs(old: CodeType, new: CodeType) -> Iterator[Pair]:
    alike = _own(old) == _own(new)
    if old.co_flags & inspect.CO_OPTIMIZED:
        if alike and _deep(old) == _deep(new):
            return
        yield old, new
    elif not alike:
        raise AtImportError
    if alike:
        for one, other in zip(_inner(old), _inner(new), strict=True):
            yield from _pairs(one, other)


def _inner(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _own(code: CodeType) -> tuple[object, ...]:
    constants = ["code" if isinstance(each, CodeType) else (type(each).__name__, repr(each)) for each in code.co_consts]
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_exceptiontable
    return (code.co_name, code.co_flags, code.co_code, constants, *names)


def _deep(code: CodeType) -> tuple[object, ...]:
    return (_own(code), *map(_deep, _inner(code)))


def patched(found: list[Pair]) -> int:
    """Give every function that has the right code the faulty one; return how many have got it.

    Raises
    ------
    AtImportError
        If a function cannot have it, because it needs other variables around it.
    """
    wanted = {_identity(old): new for old, new in found}
    count = 0
    for each in _objects():
        if type(each) is FunctionType:
            code = each.__code__
            if (new := wanted.get(_identity(code))) is not None:
                if code.co_freevars != new.co_freevars:
                    raise AtImportError
                each.__code__ = new
                count += 1
    return count


def _objects() -> list[object]:
    """Return all objects that the garbage collector knows, those among them that a test run has set aside."""
    has_some_aside = gc.get_freeze_count() > 0
    gc.unfreeze()
    found = gc.get_objects()
    if has_some_aside:
        gc.freeze()
    return found


def _identity(code: CodeType) -> tuple[object, ...]:
    return code.co_filename, code.co_qualname, code.co_firstlineno, code.co_linetable
