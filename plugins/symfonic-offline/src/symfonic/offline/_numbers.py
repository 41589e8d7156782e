"""Numbers as people write them: ``1,234.5``, ``1.234,5``, ``-3``."""

from __future__ import annotations

import re

import attrs

_NUMBER = re.compile(r"(?:(?<![^\s(=:])[-\u2212])?(?<!\w)\d+(?:[.,]\d+)*")
_GROUPED = re.compile(r"[1-9]\d{0,2}([.,])\d{3}(?:\1\d{3})*(?:(?!\1)[.,]\d+)?")
_PLAIN = re.compile(r"\d+(?:[.,]\d+)?")
_LONGEST = 40


@attrs.frozen
class Number:
    """A number where it stands in the text, as written."""

    text: str
    start: int
    end: int

    def value(self, *, whole: bool) -> float | None:
        """What it is worth; None if it is no number (a version, say), or no whole one if wanted.

        One point before three digits is read by what is wanted: a whole number takes ``1.234`` as
        a thousand, any other as a fraction. A comma there always groups thousands.
        """
        digits = self.text.lstrip("-\u2212")
        if len(digits) > _LONGEST:
            return None
        if grouped := _GROUPED.fullmatch(digits):
            if whole or grouped[1] == "," or len(re.findall("[.,]", digits)) > 1:
                digits = digits.replace(grouped[1], "")
        elif not _PLAIN.fullmatch(digits):
            return None
        size: float = int(digits) if digits.isdecimal() else float(digits.replace(",", "."))
        if whole and size != int(size):
            return None
        return (int(size) if whole else size) * (1 if digits[0] == self.text[0] else -1)


def numbers(text: str) -> tuple[Number, ...]:
    """The numbers of a text in order.

    A dash is a sign only where nothing stands before it, so ``10-20`` is two numbers; ``1,2,3`` is
    three, since commas there group nothing.
    """
    found = []
    for match in _NUMBER.finditer(text):
        whole = Number(match[0], match.start(), match.end())
        if whole.value(whole=False) is None and "." not in match[0] and "," in match[0]:
            start = match.start()
            for part in match[0].split(","):
                found.append(Number(part, start, start + len(part)))
                start += len(part) + 1
        else:
            found.append(whole)
    return tuple(found)
