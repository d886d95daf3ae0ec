"""Sections of a YAML file as checked objects, and errors that name the place in the file."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from golden.torch.settings.yaml_configuration import unknown_key

__all__ = ["Section", "parse"]

Parsed = TypeVar("Parsed", bound="Section")


class Section(BaseModel):
    """Base of a section: its fields are the known keys, another key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _keys(section: type[Section]) -> set[str]:
    """Return the keys of all sections of a kind, for the nearest one to a misspelt key."""
    kinds = Section.__subclasses__()
    return set().union(*(kind.model_fields for kind in kinds)) | set(section.model_fields)


def _place(location: tuple[int | str, ...], document: Any) -> str:
    """Write the place of an error as the keys that lead to it, without the names that pydantic gives to choices."""
    names = []
    for at, name in enumerate(location):
        is_last = at == len(location) - 1
        if isinstance(document, dict) and name not in document and not is_last:
            continue
        names.append(str(name))
        if isinstance(document, (dict, list)) and not is_last:
            document = document[name]  # type: ignore[index]
    return ".".join(names)


def parse(section: type[Parsed], document: Any) -> Parsed:
    """Check what was read from a file.

    Raises
    ------
    ValueError
        With one line for each thing that is wrong: the place, what was given, what it must be.
    """
    try:
        return section.model_validate(document)
    except ValidationError as error:
        lines = []
        for wrong in error.errors():
            place = _place(wrong["loc"], document)
            if wrong["type"] == "extra_forbidden":
                above, _, key = place.rpartition(".")
                lines.append(unknown_key(above, key, _keys(section)))
            elif wrong["type"] == "missing":
                lines.append(f"{place}: is missing, must be there")
            else:
                must = wrong["msg"].replace("Input should be", "must be").replace("Value error, ", "")
                lines.append(f"{place}: got {wrong['input']!r}, {must}")
        raise ValueError("\n".join(lines)) from None
