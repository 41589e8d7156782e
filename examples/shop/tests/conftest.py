"""Each test starts from the shop as it was shipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shop_plugin.database import SHOP


@pytest.fixture(autouse=True)
def fresh_shop() -> Iterator[None]:
    """Throw away what earlier tests wrote, and what this one writes."""
    SHOP.reset()
    yield
    SHOP.reset()
