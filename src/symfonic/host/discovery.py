"""Which plugins are installed, from metadata alone: nothing is imported."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

import attrs
import importlib_metadata

__all__ = ["GROUP", "InstalledPlugin", "discover", "kernel_version", "normal_name"]

GROUP = "symfonic.plugins"
KERNEL_DIST = "symfonic-kernel"


@attrs.frozen(kw_only=True)
class InstalledPlugin:
    """One entry point of the group ``symfonic.plugins``.

    Args:
        id: The entry point's name.
        module: The module it names.
        dist: The distribution that brings it, its name normalised.
        version: The distribution's version.
        location: Where its metadata lies.
        entry_point: What loads it.
        others: Metadata folders of other versions of the same distribution; not empty means a stale one is about.
    """

    id: str
    module: str
    dist: str
    version: str
    location: str
    entry_point: importlib_metadata.EntryPoint = attrs.field(eq=False, repr=False)
    others: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Distribution and version, as errors and listings name them."""
        return f"{self.dist} {self.version}"

    def kernel_requirement(self) -> str | None:
        """What it requires of the kernel, such as ``>=0.1,<1``; None when it does not say."""
        # Only selected plugins pay for packaging.
        from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415

        distribution = self.entry_point.dist
        try:
            lines = (distribution.requires if distribution is not None else None) or ()
        except (OSError, UnicodeDecodeError):
            return None  # half removed: what it needs cannot be told, importing it will say what is gone
        specifiers: list[str] = []
        for line in lines:
            try:
                requirement = Requirement(line)
            except InvalidRequirement:
                continue
            if normal_name(requirement.name) == KERNEL_DIST and (
                requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            ):
                specifiers.append(str(requirement.specifier))
        return ",".join(filter(None, specifiers)) or None


def normal_name(name: str) -> str:
    """A distribution's name as PEP 503 normalises it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def kernel_version() -> str:
    """The version of the running kernel; "0" where its metadata is not installed."""
    try:
        return importlib_metadata.version(KERNEL_DIST)
    except importlib_metadata.PackageNotFoundError:
        return "0"


def discover(distributions: Iterable[importlib_metadata.Distribution] | None = None) -> tuple[InstalledPlugin, ...]:
    """Every installed plugin, sorted by id and distribution.

    Metadata that stands twice, as an editable install leaves it, is one; another version of the same distribution
    later on the path is kept as ``others`` of the first, which is the one that would be imported.

    Args:
        distributions: What to look at; default: all that can be imported. One scan costs 10 to 25 ms.
    """
    found: dict[tuple[str, str], list[InstalledPlugin]] = defaultdict(list)
    there: Iterable[importlib_metadata.Distribution]
    there = importlib_metadata.distributions() if distributions is None else distributions  # type: ignore[assignment]  # every finder's class has what Distribution has
    for distribution in there:
        for plugin in _plugins_of(distribution):
            found[plugin.id, plugin.dist].append(plugin)
    merged = [_merged(same) for same in found.values()]
    return tuple(sorted(merged, key=lambda plugin: (plugin.id, plugin.dist)))


def _plugins_of(distribution: importlib_metadata.Distribution) -> list[InstalledPlugin]:
    try:
        text = distribution.read_text("entry_points.txt")
    except (OSError, UnicodeDecodeError):
        return []  # half removed metadata of some other distribution is no reason to fail here
    if not text or GROUP not in text:
        return []
    try:
        points = [point for point in distribution.entry_points if point.group == GROUP]
    except (TypeError, ValueError):
        return []  # a file that is no list of entry points
    dist, version, location = _identity(distribution)
    return [
        InstalledPlugin(
            id=point.name, module=point.value, dist=dist, version=version, location=location, entry_point=point
        )
        for point in points
    ]


def _identity(distribution: importlib_metadata.Distribution) -> tuple[str, str, str]:
    """Name, version and place; from the metadata folder's name, which costs a third of reading METADATA."""
    folder = str(
        getattr(distribution, "_path", "")
    )  # PathDistribution keeps it here; other finders have METADATA alone
    match = re.search(r"([^/\\]+?)-([^/\\-]+)\.dist-info[/\\]?$", folder)
    if match:
        return normal_name(match[1]), match[2], folder
    try:
        return normal_name(distribution.name), distribution.version, folder
    except (KeyError, TypeError, AttributeError, OSError):
        return "unknown", "0", folder


def _merged(same: Sequence[InstalledPlugin]) -> InstalledPlugin:
    first = same[0]
    others = dict.fromkeys(p.location for p in same[1:] if (p.version, p.module) != (first.version, first.module))
    return attrs.evolve(first, others=tuple(others))
