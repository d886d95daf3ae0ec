"""CITATION.cff names the version and the licence that the distribution has."""

import tomllib

import yaml

from .test_layout import ROOT


def test_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])
    assert citation["title"].startswith(project["name"])
    assert {"cff-version", "message", "authors"} <= set(citation)
