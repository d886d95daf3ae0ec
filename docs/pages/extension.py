"""The Sphinx extension of this site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.domains.python import PyObject

from docs.pages import accumulators, api, citations, results, units

__all__ = ["setup"]


def setup(app: Any) -> dict[str, bool]:
    """Register the directives and handlers of the pages."""
    app.add_directive("surface", api.Surface)
    app.add_directive("accumulators", accumulators.Accumulators)
    app.add_config_value("generated_pages", True, "env", bool)
    app.connect("builder-inited", _generate)
    app.connect("autodoc-process-docstring", api.hide_colon, priority=400)  # ahead of napoleon
    app.connect("autodoc-process-docstring", api.show_colon, priority=600)  # behind it
    app.connect("missing-reference", api.resolve)
    app.connect("doctree-resolved", citations.link)
    app.connect("doctree-resolved", api.link_code)
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"
    app.connect("doctree-resolved", results.mark)
    app.connect("env-get-outdated", results.outdated)
    app.connect("source-read", results.refresh)
    app.connect("source-read", _link_to_the_readme)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _generate(app: Any) -> None:
    """Write the pages that are made from the code and the tutorials that run."""
    if app.config.generated_pages:
        units.write(Path(app.srcdir) / "units")


def _link_to_the_readme(app: Any, document: str, source: list[str]) -> None:
    """Let links to the repository's front page, which are right in the repository, lead to its page here."""
    source[0] = source[0].replace("](../README.md", "](/readme.md")
