"""The kinds of argument the shop's tools share, each with what it accepts in its schema."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

__all__ = [
    "CustomerId",
    "Limit",
    "Month",
    "OrderId",
    "OrderStatus",
    "Quantity",
    "RefundReason",
    "RefundStatus",
    "Year",
]

OrderId = Annotated[str, Field(pattern=r"^[Aa]-[0-9]{4}$")]
CustomerId = Annotated[str, Field(pattern=r"^[Cc]-[0-9]{3}$")]
Month = Annotated[int, Field(ge=1, le=12)]
Year = Annotated[int, Field(ge=2000, le=2100)]
Limit = Annotated[int, Field(ge=1, le=50)]
Quantity = Annotated[int, Field(ge=1, le=1000)]
OrderStatus = Literal["pending", "paid", "shipped", "delivered", "cancelled"]
RefundReason = Literal["damaged", "late", "wrong_item", "changed_mind", "other"]
RefundStatus = Literal["requested", "approved", "paid", "rejected"]
