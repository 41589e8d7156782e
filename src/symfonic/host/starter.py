"""A first symfonic.toml, written from the metadata of what is installed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import attrs

from symfonic.host.config import PluginTable, is_plugin_id
from symfonic.host.config_keys import ConfigKey, config_keys
from symfonic.host.discovery import InstalledPlugin
from symfonic.host.registry import LoadedPlugin, find_plugin, load_plugins
from symfonic.host.selection import refuse
from symfonic.kernel.errors import PluginError
from symfonic.kernel.phases import Effect
from symfonic.plugin import ChatModel, StageHandler

__all__ = ["Starter", "choose", "model_uses", "version_range"]

_HEAD = """\
# A deployment, written by `symfonic-kernel init` from the metadata of what is installed.
# What is not named here is never imported. A line that begins with # and no blank is switched off: take its # away.
# Every key: docs/symfonic-toml.md. What the file compiles to: symfonic-kernel plan."""

_MODEL = """\
# The chat model: "plugin:id" of a model that a plugin below contributes, or "module:Class" of any LangChain chat model.
# Keys belong in the environment, not here."""

_PROMPT = """\
#[prompt]
#system = "You are a helpful assistant. Answer from the tools.\""""

_PLUGINS = """\
# The plugins, in order of precedence. With `--with ID`, init switches one on, with its configuration keys and the grants
# its stages declare."""


def choose(ids: Iterable[str], installed: Sequence[InstalledPlugin]) -> tuple[LoadedPlugin, ...]:
    """Load the plugins that are switched on, and no other.

    Raises:
        PluginError: One is not installed or cannot be used; with several problems a PluginsRefused that holds all.
    """
    found, problems = [], []
    for plugin_id in dict.fromkeys(ids):
        try:
            found.append(find_plugin(PluginTable(id=plugin_id), installed))
        except PluginError as error:
            problems.append(error)
    loaded, failed = load_plugins(found if not problems else (), configured=False)
    if problems or failed:
        raise refuse([*problems, *failed])
    return loaded


def model_uses(chosen: Iterable[LoadedPlugin]) -> tuple[str, ...]:
    """What ``[model] use`` may say for the models these plugins contribute."""
    return tuple(
        f"{plugin.id}:{given.id}" for plugin in chosen for given in plugin.contributions if isinstance(given, ChatModel)
    )


@attrs.frozen(kw_only=True)
class Starter:
    """What a first symfonic.toml is written from.

    Args:
        installed: Every installed plugin.
        chosen: Those that are switched on, in order of precedence.
        model: ``[model] use``, or None.
    """

    installed: Sequence[InstalledPlugin]
    chosen: Sequence[LoadedPlugin] = ()
    model: str | None = None

    @property
    def off(self) -> tuple[InstalledPlugin, ...]:
        """The plugins whose blocks are switched off."""
        on = {plugin.id for plugin in self.chosen}
        return tuple(one for one in self.installed if one.id not in on and is_plugin_id(one.id))

    @property
    def to_fill_in(self) -> tuple[str, ...]:
        """What the file must be told before it can start, in words."""
        missing = [] if self.model is not None else ["[model] use"]
        for plugin in self.chosen:
            names = [key.key for key in config_keys(plugin.config_class) if key.required]
            missing.extend(f"{name} of plugin {plugin.id}" for name in names)
        return tuple(missing)

    def text(self) -> str:
        """The file: valid as it is, and with any block switched on."""
        blocks = [f"{_HEAD}\nschema = 1", self._model(), _PROMPT, _PLUGINS]
        blocks.extend(map(_on, self.chosen))
        blocks.extend(map(_off, self.off))
        if not self.chosen and not self.off:
            blocks.append("# None is installed yet.")
        return "\n\n".join(blocks) + "\n"

    def _model(self) -> str:
        options = '#[model.options]\n#model = "gpt-5-mini"'
        if self.model is not None:
            return f"{_MODEL}\n[model]\nuse = {_text(self.model)}\n\n{options}"
        known = model_uses(self.chosen)
        listed = f"\n# The plugins switched on below contribute: {', '.join(known)}." if known else ""
        use = known[0] if known else "langchain_openai:ChatOpenAI"
        return f"{_MODEL}{listed}\n#[model]\n#use = {_text(use)}\n\n{options}"


def version_range(version: str) -> str | None:
    """Which versions fit a deployment that was written with this one: from it to the next major one.

    None where the version is none that can be compared.
    """
    # Only who writes a file pays for packaging.
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415

    try:
        parsed = Version(version)
    except InvalidVersion:
        return None
    epoch = f"{parsed.epoch}!" if parsed.epoch else ""
    return f">={parsed.public},<{epoch}{parsed.major + 1}"


def _off(plugin: InstalledPlugin) -> str:
    lines = ["[[plugin]]", *_identity(plugin.id, plugin.dist, plugin.version)]
    return "\n".join(f"#{line}" for line in lines)


def _on(plugin: LoadedPlugin) -> str:
    source = plugin.contributor
    lines = ["[[plugin]]", *_identity(plugin.id, source.dist, source.version)]
    stages = [given for given in plugin.contributions if isinstance(given, StageHandler) and given.effects]
    grants = [str(effect) for effect in Effect if any(effect in stage.effects for stage in stages)]
    if grants:
        declared = "; ".join(f"{stage.id} at {stage.phase}: {', '.join(sorted(stage.effects))}" for stage in stages)
        lines.append(
            _comment(f"The effects its stages declare ({declared}). They may do what is granted, and no more.")
        )
        lines.append(f"grants = {_value(grants)}")
    keys = config_keys(plugin.config_class)
    if keys:
        lines.extend(["", "[plugin.config]", *(_config_line(key) for key in keys)])
    return "\n".join(lines)


def _identity(plugin_id: str, dist: str, version: str) -> list[str]:
    lines = [f"id = {_text(plugin_id)}"]
    lines.extend([f"dist = {_value(dist)}"] if _value(dist) is not None else [])
    fitting = version_range(version)
    lines.extend([f"version = {_text(fitting)}"] if fitting is not None else [])
    return lines


def _config_line(key: ConfigKey) -> str:
    kind = key.type or "any"
    if key.required:
        return _comment(f"{key.key}: {kind}, required")
    value = None if key.default is None else _value(key.default)
    if value is None:
        return _comment(f"{key.key}: {kind}, not set")
    return f"#{_key(key.key)} = {value}  {_comment(kind)}"


def _comment(text: str) -> str:
    """A comment; what TOML refuses in one becomes a question mark."""
    return "# " + "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if bare else _text(name)


def _text(text: str) -> str:
    """A TOML basic string, which is JSON's but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: object) -> str | None:
    """A value as TOML has it on one line; None for what it cannot hold."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return None if _has_surrogates(value) else _text(value)
    if isinstance(value, int | float):
        return str(value) if type(value) in (int, float) else None
    if isinstance(value, list | tuple):
        items = [_value(item) for item in value]
        return None if None in items else f"[{', '.join(map(str, items))}]"
    if isinstance(value, Mapping):
        return _inline_table(value)
    return None


def _inline_table(table: Mapping[object, object]) -> str | None:
    pairs = []
    for name, inner in table.items():
        value = _value(inner)
        if value is None or not isinstance(name, str) or _has_surrogates(name):
            return None
        pairs.append(f"{_key(name)} = {value}")
    return f"{{{', '.join(pairs)}}}"


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)
