"""What Sphinx is told; ``python docs/site/build.py`` runs it over the staged pages."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import dgrr

project = "dgrr"
version = release = dgrr.__version__
project_copyright = "the authors of dgrr; MIT"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton", "docstrings", "signatures"]

nitpicky = True
nitpick_ignore_regex = [
    ("py:obj", r"[a-z_]\w*"),
    ("py:obj", r"(pandas|pyarrow|polars)\.\w+"),
    ("py:class", r"collections\.abc\.\w+"),
    ("py:class", r".*\.scaled_dot_product\.Values"),  # the name of an axis
]
"""A word in small letters may be an argument, and other packages have pages of their own. All else that is named has
to be there."""

default_role = "name"
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
nb_execution_mode = "off"  # build.py has executed them
add_module_names = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 80
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
toc_object_entries = False  # each page copies all of them; a table at its top does the same
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = "dgrr"
html_logo = html_favicon = str(Path(__file__).parents[1] / "pictures" / "logo.svg")
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
pygments_dark_style = "github-dark"
