"""How the pages of the documentation look; `build.py` gives the sources."""

project = "Tilewright"
author = "The Tilewright authors"
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "Tilewright"
html_copy_source = False
# Links to files and folders of the repository that are no pages lead nowhere here.
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure"]
