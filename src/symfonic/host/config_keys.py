"""The keys of a plugin's configuration, read off its config class."""

from __future__ import annotations

import attrs

__all__ = ["ConfigKey", "config_keys"]


@attrs.frozen(kw_only=True)
class ConfigKey:
    """One key of ``[plugin.config]``.

    Args:
        key: As the file spells it.
        type: Its type, as the class annotates it.
        default: What it is when the file does not say; None where that is unknown too.
        required: Whether the file must say.
    """

    key: str
    type: str | None
    default: object = None
    required: bool = False


def config_keys(config_class: type | None) -> tuple[ConfigKey, ...]:
    """The keys a config class reads, in its own order; none where there is no class."""
    if config_class is None:
        return ()
    return tuple(
        ConfigKey(
            key=field.alias,
            type=getattr(field.type, "__name__", None) if isinstance(field.type, type) else str(field.type),
            default=None if field.default is attrs.NOTHING else _default(field.default),
            required=field.default is attrs.NOTHING,
        )
        for field in attrs.fields(config_class)
        if field.init
    )


def _default(default: object) -> object:
    factory = getattr(default, "factory", None)  # attrs' Factory, whose value is made for each instance
    return factory() if factory is not None and not getattr(default, "takes_self", False) else default
