"""Who contributed what. Known at the host only: the kernel never learns it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import attrs

__all__ = ["CODE", "HOST", "Contributor", "Provenance"]


@attrs.frozen
class Contributor:
    """Who brought something.

    Args:
        plugin: The plugin's id; empty for what the deployment's own code handed in.
        dist: The distribution that supplies it; empty where the plugin was handed in as a module.
        version: Its version.
    """

    plugin: str = ""
    dist: str = ""
    version: str = ""

    def __str__(self) -> str:
        """As errors and listings name it."""
        if not self.plugin:
            return "the host itself" if self.dist else "the deployment's code"
        return f"plugin {self.plugin} ({self.dist} {self.version})" if self.dist else f"plugin {self.plugin}"

    @property
    def aside(self) -> str:
        """As it stands behind a name, such as `` (plugin mine, mine-pkg 0.3.0)``; empty for what the host brings."""
        if not self.plugin:
            return "" if self.dist else f" ({self})"
        return f" (plugin {self.plugin}, {self.dist} {self.version})" if self.dist else f" (plugin {self.plugin})"


CODE = Contributor()
"""The deployment's own code."""
HOST = Contributor(dist="symfonic-kernel")
"""What the host brings itself."""


def _read_only(given: Mapping[str, Contributor]) -> Mapping[str, Contributor]:
    return MappingProxyType(dict(given))


@attrs.frozen(kw_only=True)
class Provenance:
    """Contribution to contributor, one mapping a kind; names are the plan's.

    Args:
        model: Who brought the chat model.
        forcing: Who answered the forcing question; None: nobody did.
    """

    tools: Mapping[str, Contributor] = attrs.field(factory=dict, converter=_read_only)
    routers: Mapping[str, Contributor] = attrs.field(factory=dict, converter=_read_only)
    stages: Mapping[str, Contributor] = attrs.field(factory=dict, converter=_read_only)
    sinks: Mapping[str, Contributor] = attrs.field(factory=dict, converter=_read_only)
    model: Contributor = CODE
    forcing: Contributor | None = None

    def blame(self, names: Iterable[str]) -> tuple[str, ...]:
        """A sentence for each of these stages or tools that somebody contributed."""
        found: list[str] = []
        for name in dict.fromkeys(names):
            for what, owners in (("stage", self.stages), ("tool", self.tools)):
                if name in owners:
                    found.append(f"{what} {name} comes from {owners[name]}")
        return tuple(found)
