"""What a deployment may set under ``[plugin.config]``; the host checks the table against this class."""

from __future__ import annotations

import attrs

__all__ = ["Config"]


@attrs.frozen(kw_only=True)
class Config:
    """The shop's settings.

    Args:
        refund_limit_eur: The highest refund, in euros, that is made without a person.
        audit_file: Where events are appended, relative to the deployment's folder.
    """

    refund_limit_eur: float = attrs.field(default=200.0, validator=attrs.validators.ge(0))
    audit_file: str = attrs.field(default="audit.jsonl", validator=attrs.validators.min_len(1))
