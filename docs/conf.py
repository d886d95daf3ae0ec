"""Settings of the documentation site: ``make docs`` builds it into build/docs."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import golden  # noqa: E402

os.environ["COLUMNS"] = "92"  # for tables that the tutorials print

project = "cbfloat"
author = "the authors of cbfloat"
copyright = author
version = release = golden.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docs.pages.extension",
]
exclude_patterns = ["examples", "pages", "**/*.ipynb"]

# Pages: MyST Markdown. Headings get the anchors that a reader of the repository sees, too.
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4

# References: a name in backticks is a link if the site documents it. Names of this project's packages must be found.
# Names of other packages cannot be, since a build needs no network.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!(golden|hdl)\.).*")]
default_role = "py:obj"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

# Tutorials: scripts that run when the site is built, and again only when they have changed.
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "tutorials",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("docs.pages.pictures.scraper",),
    "capture_repr": ("_repr_html_", "__repr__"),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "abort_on_example_error": True,
}

html_theme = "furo"
html_title = "cbfloat"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6bcb", "color-brand-content": "#0b6bcb"},
    "dark_css_variables": {"color-brand-primary": "#7cb8ff", "color-brand-content": "#7cb8ff"},
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
