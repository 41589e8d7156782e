"""Days, months and years named in a text, in English, Spanish and ISO form."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Callable

import attrs

from symfonic.offline._text import fold

Today = Callable[[], datetime.date]
"""What the current day is; injected, since this model reads no clock of its own."""

MONTHS = {
    name: number
    for names in (
        "january february march april may june july august september october november december",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    )
    for number, name in enumerate(names.split(), 1)
} | {"setiembre": 9}

_MOST_DATES = 50
"""Dates of one text that are read; comparing them with each other must stay cheap."""

_SHORT = {name[:3]: number for name, number in MONTHS.items()}
_ISO = re.compile(r"(?<![\w-])(\d{4})-(\d{2})(?:-(\d{2}))?(?![\w-])")
_NAMED = re.compile(
    r"(?:(?<!\w)(\d{1,2})(?:st|nd|rd|th|º)?\s{1,3}(?:de\s{1,3}|of\s{1,3})?)?"
    rf"\b({'|'.join(MONTHS)})\b"
    r"(?:\s{1,3}(\d{1,2})(?:st|nd|rd|th)?(?!\w))?"
    r"(?:,?\s{1,3}(?:del?\s{1,3}|of\s{1,3})?(\d{4})(?!\w))?",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?<![\w.,-])((?:19|20)\d{2})(?![\w-]|[.,]\d)")
_RELATIVE = re.compile(r"\b(?:(today|hoy)|(yesterday|ayer)|(tomorrow))\b", re.IGNORECASE)
_MODAL_BEFORE = re.compile(r"\b(?:in|of|for|since|until|from|to|during|by|last|this)\s{1,3}$", re.IGNORECASE)
_MODAL_AFTER = re.compile(r"\s{1,3}(?:i|we|you|he|she|it|they|be|have|not|the|this|that)\b", re.IGNORECASE)


@attrs.frozen
class When:
    """A day, a month or a year as far as the text tells it, and where it stands."""

    start: int
    end: int
    year: int | None = None
    month: int | None = None
    day: int | None = None
    name: str | None = None
    """The month's name as written."""

    def first(self) -> datetime.date | None:
        """Its first day; None while its year is unknown or it is no day of the calendar."""
        return self._on(self.month or 1, self.day or 1)

    def last(self) -> datetime.date | None:
        """Its last day, likewise."""
        month = self.month or 12
        return self._on(month, self.day or _length(self.year, month))

    def _on(self, month: int, day: int) -> datetime.date | None:
        try:
            return datetime.date(self.year or 0, month, day)
        except ValueError:
            return None


def month_of(text: str, *, digits: bool) -> int | None:
    """The month a value such as ``May``, ``mayo``, ``may.`` or (with digits) ``05`` stands for."""
    folded = fold(text).strip(" .")
    if digits and folded.isdecimal() and 1 <= int(folded[:4]) <= 12:
        return int(folded)
    return MONTHS.get(folded) or _SHORT.get(folded)


def dates(text: str, today: Today | None = None) -> tuple[When, ...]:
    """The dates of a text in order, none overlapping another.

    A date without a year takes the year of another date of the text, else the current one where a
    clock was given.
    """
    found: list[When] = []
    for when in (*_iso(text), *_relative(text, today), *_named(text), *_years(text)):
        if len(found) == _MOST_DATES:
            break
        if not any(when.start < other.end and other.start < when.end for other in found):
            found.append(when)
    years = [when.year for when in found if when.year]
    year = years[0] if years else today().year if today and found else None
    found.sort(key=lambda when: when.start)
    return tuple(when if when.year else attrs.evolve(when, year=year) for when in found)


def _iso(text: str) -> list[When]:
    return [
        When(*m.span(), int(m[1]), int(m[2]), int(m[3]) if m[3] else None)
        for m in _ISO.finditer(text)
        if 1 <= int(m[2]) <= 12 and int(m[3] or 1) in range(1, _length(int(m[1]), int(m[2])) + 1)
    ]


def _named(text: str) -> list[When]:
    found = []
    for match in _NAMED.finditer(text):
        before, name, after, year = match.groups()
        if not (before or after or year) and _is_verb(text, match):
            continue
        day = int(before or after or 0)
        known = day if 1 <= day <= 31 else None
        told = int(year) if year else None
        found.append(When(*match.span(), told, MONTHS[name.lower()], known, name))
    return found


def _is_verb(text: str, match: re.Match[str]) -> bool:
    """Whether ``may`` or ``march`` is the verb: after no preposition and small, or before a pronoun."""
    if match[2].lower() not in {"may", "march"}:
        return False
    led = _MODAL_BEFORE.search(text, max(0, match.start() - 12), match.start())
    return not led and (match[2].islower() or bool(_MODAL_AFTER.match(text, match.end())))


def _years(text: str) -> list[When]:
    return [When(*m.span(), int(m[1])) for m in _YEAR.finditer(text)]


def _relative(text: str, today: Today | None) -> list[When]:
    if today is None:
        return []
    found = []
    for match in _RELATIVE.finditer(text):
        shift = -1 if match[2] else 1 if match[3] else 0
        day = today() + datetime.timedelta(days=shift)
        found.append(When(*match.span(), day.year, day.month, day.day))
    return found


def _length(year: int | None, month: int) -> int:
    return calendar.monthrange(year or 2000, month)[1] if year != 0 else 31
