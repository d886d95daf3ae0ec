"""Sections of a YAML file as checked objects, and errors that name the place in the file."""

from __future__ import annotations

import difflib
from typing import Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.fields import FieldInfo

from golden.torch.common.arguments import unknown_key
from golden.torch.common.terminal import say_once

__all__ = ["Section", "parse"]

# In our words: kind of error of pydantic -> the allowed value.
_MUST = {
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "a mapping of keys to values"),
    "path_type": "a path",
    "invalid_key": "a key that is text",
}
Parsed = TypeVar("Parsed", bound="Section")


class Section(BaseModel):
    """Base of a section: its fields are the known keys, another key is an error; some are reported once, and left."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    without_effect: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _leave_out(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        for name in cls.without_effect:
            if name in given:
                say_once(f"{name}: is for the Model Zoo's own files; accepted, and without effect here")
        return {name: each for name, each in given.items() if name not in cls.without_effect}


def _unknown(place: str, key: str, section: type[Section], names: list[str]) -> str:
    """Return the message for an unknown key: with the nearest key of any section, or else all keys of this one."""
    everywhere = set().union(*map(_fields, Section.__subclasses__()), _fields(section))
    if difflib.get_close_matches(key, everywhere, n=1):
        return unknown_key(place, key, everywhere)
    return unknown_key(place, key, set().union(*map(_fields, _at([section], names))))


def _fields(section: type[Section]) -> dict[str, FieldInfo]:
    """Return the fields of a section by their keys in a file."""
    return {field.alias or name: field for name, field in section.model_fields.items()}


def _at(sections: list[type[Section]], names: list[str]) -> list[type[Section]]:
    """Return the kinds of section that may stand at a place; names that are no fields distinguish choices."""
    for name in names:
        fields = [known[name] for known in map(_fields, sections) if name in known]
        if fields:
            sections = [kind for field in fields for kind in _sections_of(field.annotation)]
    return sections


def _sections_of(annotation: Any) -> list[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    return [kind for each in get_args(annotation) for kind in _sections_of(each)]


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
    """Check the content of a file.

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
                *above, key = place.split(".")
                lines.append(_unknown(".".join(above), key, section, above).removeprefix("."))
            elif wrong["type"] == "missing":
                lines.append(f"{place}: is missing, must be given")
            elif wrong["type"] in _MUST:
                lines.append(f"{place}: got {wrong['input']!r}, must be {_MUST[wrong['type']]}")
            else:
                must = wrong["msg"].replace("Input should be", "must be").replace("Value error, ", "")
                lines.append(f"{place}: got {wrong['input']!r}, {must}")
        raise ValueError("\n".join(lines)) from None
