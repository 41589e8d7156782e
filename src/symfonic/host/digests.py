"""Digests of configuration for a plan's equality key, secrets left out first."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence

from symfonic.host.registry import LoadedPlugin
from symfonic.kernel.events import plain
from symfonic.kernel.stages import Stage

__all__ = ["config_digests", "redacted"]

SECRET_WORDS = frozenset(
    {"apikey", "auth", "credential", "credentials", "key", "passwd", "password", "secret", "token"}
)
"""Words that make a configuration key's value a secret; whole words, so that ``keywords`` is none."""


def config_digests(plugins: Sequence[LoadedPlugin], stages: Sequence[Stage]) -> dict[str, str]:
    """Capability, or plugin id where a plugin resolves none, to the digest of the plugin's configuration."""
    resolves = {stage.name.partition(".")[0]: stage.resolves for stage in stages if stage.resolves is not None}
    digests: dict[str, str] = {}
    for plugin in plugins:
        if plugin.config is not None:
            key = resolves.get(plugin.id, plugin.id)
            text = json.dumps(redacted(plain(plugin.config)), sort_keys=True, default=str)
            text = f"{digests.get(key, '')}{text}"  # a plugin may be named as another's capability is: both count
            digests[key] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return digests


def redacted(value: object) -> object:
    """JSON-like data with the values of secret keys replaced, at any depth."""
    if isinstance(value, dict):
        return {
            key: "..." if _is_secret(key) and not isinstance(item, dict) else redacted(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [redacted(item) for item in value]
    return value


def _is_secret(key: str) -> bool:
    return bool(SECRET_WORDS & set(re.split(r"[^a-z0-9]+", key.lower())))
