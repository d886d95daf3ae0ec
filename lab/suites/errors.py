"""Errors in a file of vectors."""

__all__ = ["VectorError"]


class VectorError(ValueError):
    """A line that is not of the file's format; the message begins with file and line."""

    def __init__(self, name: str, line: int, got: str, must: str) -> None:
        super().__init__(f"{name}:{line}: got {got!r}, must be {must}")
