"""symfonic.toml: what a deployment says, read strictly."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import attrs

from symfonic.host.structure import did_you_mean, structure
from symfonic.kernel.errors import ConfigError
from symfonic.kernel.limits import Limits
from symfonic.kernel.phases import Effect

__all__ = [
    "CONFIG_ENV",
    "DEFAULT_FILE",
    "Deployment",
    "EventsTable",
    "ModelTable",
    "PluginTable",
    "PromptTable",
    "ToolsTable",
    "chosen_config",
    "find_config",
    "is_plugin_id",
    "load_deployment",
    "parse_deployment",
]

CONFIG_ENV = "SYMFONIC_CONFIG"
DEFAULT_FILE = "symfonic.toml"
SCHEMA = 1
_ID = re.compile(r"[a-z][a-z0-9-]*")
_HUGE = 10**6  # Python refuses to write numbers of thousands of digits


@attrs.frozen(kw_only=True)
class ModelTable:
    """``[model]``.

    Args:
        use: A selected plugin's chat model, ``plugin:id``, or any importable class, ``module:Class``.
        options: Keyword arguments for it.
    """

    use: str
    options: Mapping[str, object] = attrs.field(factory=dict, repr=False)


@attrs.frozen(kw_only=True)
class PromptTable:
    """``[prompt]``.

    Args:
        system: The system text.
    """

    system: str = ""


@attrs.frozen(kw_only=True)
class ToolsTable:
    """``[tools]``.

    Args:
        show_errors: Whether the model is told the text of any tool error, not only of those meant for it.
    """

    show_errors: bool = False


@attrs.frozen(kw_only=True)
class EventsTable:
    """``[events]``.

    Args:
        sinks: Which sinks get events: "logging" and ``plugin.id`` of contributed ones. Absent: all of these.
        record_text: Whether sinks get people's text.
    """

    sinks: tuple[str, ...] | None = None
    record_text: bool = False


@attrs.frozen(kw_only=True)
class PluginTable:
    """One ``[[plugin]]`` block.

    Args:
        id: The plugin's id, the name of its entry point.
        dist: The distribution that may supply it; absent: any one that is installed.
        version: Which versions of it may, such as ``>=1,<2``.
        required: Whether the deployment may not start without it. Absent: only when its stages may refuse tool calls.
        grants: The effects its stages may have.
        config: Its own table, checked against its config class.
    """

    id: str
    dist: str | None = None
    version: str | None = None
    required: bool | None = None
    grants: tuple[str, ...] = ()
    config: Mapping[str, object] = attrs.field(factory=dict, repr=False)


@attrs.frozen(kw_only=True)
class Deployment:
    """A whole symfonic.toml.

    Args:
        schema: The file's schema, 1.
        policy: "strict": any problem stops the start. "degraded": plugins that are not required are left out, loudly.
        model: Which chat model.
        prompt: The system text.
        limits: What bounds a turn.
        tools: How tools are run.
        events: Where events go.
        plugin: The selected plugins, in order of precedence.
    """

    schema: int = SCHEMA
    policy: Literal["strict", "degraded"] = "strict"
    model: ModelTable | None = None
    prompt: PromptTable = attrs.field(factory=PromptTable)
    limits: Limits = attrs.field(factory=Limits)
    tools: ToolsTable = attrs.field(factory=ToolsTable)
    events: EventsTable = attrs.field(factory=EventsTable)
    plugin: tuple[PluginTable, ...] = ()


def chosen_config(path: str | os.PathLike[str] | None = None) -> Path:
    """The deployment's file, there or not: the one given, else ``SYMFONIC_CONFIG``, else ./symfonic.toml."""
    return Path(path or os.environ.get(CONFIG_ENV) or DEFAULT_FILE)


def find_config(path: str | os.PathLike[str] | None = None) -> Path:
    """The file to read: the one given, else ``SYMFONIC_CONFIG``, else ./symfonic.toml.

    Raises:
        ConfigError: It does not exist.
    """
    chosen = chosen_config(path)
    if not chosen.is_file():
        what, way = "is a folder", ""
        if not chosen.is_dir():
            what, way = "does not exist", ", or write one with `symfonic-kernel init`"
        text = f"{chosen} {what}; go to the deployment's folder, or name its file with --config or {CONFIG_ENV}{way}"
        raise ConfigError([text])
    return chosen


def load_deployment(path: Path) -> Deployment:
    """Read a file.

    Raises:
        ConfigError: It cannot be read, is not TOML, or says something that cannot be; every problem is listed.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        table = tomllib.loads(text)
    except OSError as error:
        raise ConfigError([f"cannot be read: {error.strerror or type(error).__name__}"], source=str(path)) from error
    except UnicodeDecodeError as error:
        raise ConfigError([f"is not UTF-8 at byte {error.start}; save it as UTF-8"], source=str(path)) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
        raise ConfigError([f"is not valid TOML: {error}"], source=str(path)) from error
    return parse_deployment(table, source=str(path))


def parse_deployment(table: Mapping[str, object], *, source: str = "") -> Deployment:
    """Check a table.

    Raises:
        ConfigError: With every problem.
    """
    schema = table.get("schema", SCHEMA)
    if schema != SCHEMA or isinstance(schema, bool):
        shown = "a huge number" if isinstance(schema, int) and abs(schema) > _HUGE else repr(schema)
        raise ConfigError(
            [
                f"schema: is {shown}, wanted {SCHEMA}; write schema = {SCHEMA}, or install a symfonic-kernel that reads it"
            ],
            source=source,
        )
    deployment, problems = structure(table, Deployment)
    if deployment is not None:
        problems = [*_plugin_problems(deployment.plugin)]
    if problems or deployment is None:
        raise ConfigError(problems, source=source)
    return deployment


def is_plugin_id(text: str) -> bool:
    """Whether a text can be the id of a plugin or a contribution."""
    return _ID.fullmatch(text) is not None


def _plugin_problems(plugins: tuple[PluginTable, ...]) -> list[str]:
    problems: list[str] = []
    seen: set[str] = set()
    for plugin in plugins:
        path = f"plugin {plugin.id!r}"
        if not is_plugin_id(plugin.id):
            problems.append(f"{path}: an id is small letters, digits and hyphens, a letter first")
        if plugin.id in seen:
            problems.append(f"{path}: stands twice; keep one block")
        seen.add(plugin.id)
        problems.extend(
            f"{path}.grants: {grant!r} is no effect; {did_you_mean(grant, Effect)}"
            for grant in plugin.grants
            if grant not in tuple(Effect)
        )
        problems.extend(_version_problem(path, plugin.version))
    return problems


def _version_problem(path: str, version: str | None) -> list[str]:
    if version is None:
        return []
    # Only a file that names a version pays for packaging.
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # noqa: PLC0415

    try:
        SpecifierSet(version)
    except (InvalidSpecifier, ValueError):  # a number of thousands of digits is a ValueError
        return [f'{path}.version: {version!r} is no version specifier; write it as ">=1,<2"']
    return []
