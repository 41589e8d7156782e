"""Sphinx: MyST pages, furo, and everything nitpicky."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "symfonic-kernel"
author = "The symfonic-kernel authors"
copyright = "2026, the symfonic-kernel authors"  # noqa: A001  # Sphinx's name

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "turn_pages"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "symfonic-kernel"
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_type_aliases = {"Route": "Route", "Handler": "Handler", "Binder": "Binder"}
napoleon_google_docstring = True
napoleon_use_param = False
napoleon_use_rtype = False

nitpicky = True
# Types of other packages have no inventory here: docs build without the network.
nitpick_ignore_regex = [
    ("py:.*", r"(langchain_core|pluggy|attrs|collections|typing|asyncio|os|pathlib|types|contextlib)(\..*)?"),
    ("py:.*", r"(BaseMessage|AIMessage|ToolMessage|ToolCall|RunnableConfig|BaseModel|BaseTool|Path|ModuleType)"),
    ("py:.*", r".*\._[a-z_]+\..*"),
    # Internal types that stand in public signatures, and names Sphinx cannot follow through TYPE_CHECKING.
    (
        "py:class",
        r"(.*\.)?(RequestFields|Generation|Source|_Spec|Toolset|PlanLike|TurnLike|TypeAliasForwardRef|Workbench)",
    ),
    ("py:class", r"(enum\.)?StrEnum|(.*\.)?Binding|json.*"),
    ("py:.*", r"(C_co|T|E|P|Never|Self|Any|Literal.*|optional|Names|Apply|Traces|CheckArgs|Binder|Handler|Step)"),
    (
        "py:class",
        r"(symfonic\.)?.*(Binder|Handler|Route|CallableModel|EventSink|StagePlan|HandlerBindings|Names|Apply|CheckArgs)",
    ),
]
