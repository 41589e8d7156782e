"""The single rules: what one parameter may take from a reading.

Each returns None where nothing in the prompt speaks for a value, and spends what it took.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence

from symfonic.offline._dates import month_of
from symfonic.offline._offered import Parameter
from symfonic.offline._reading import Piece, Reading, is_code, pieces
from symfonic.offline._text import Word, name_stems, stems, words

_MONTH, _YEAR, _DAY = map(name_stems, ("month mes", "year ano anio", "day dia"))
_DATE = _DAY | name_stems("date fecha when cuando")
_START = name_stems("start from since begin after desde inicio")
_END = name_stems("end to until till before hasta fin last")
_DATE_FORMATS = frozenset({"date", "date-time"})
_IDENTIFIER = name_stems("id identifier number num no code key ref reference order sku numero codigo pedido")
_FLAG_HELPERS = name_stems("is has with include only show con incluir solo")
_NOT = frozenset(["no", "not", "without", "never", "sin", "nunca", "dont", "exclude", "excluding"])
_REPEATED_GROUP = re.compile(r"\)[+*{]")
_LENGTHS = {"minLength": operator.ge, "maxLength": operator.le}
_BOUNDS = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
}


def fits(value: str | float, parameter: Parameter) -> bool:
    """Whether a value keeps the bounds, lengths and pattern of its parameter's schema."""
    size = len(value) if isinstance(value, str) else value
    for key, holds in (_LENGTHS if isinstance(value, str) else _BOUNDS).items():
        limit = parameter.schema.get(key)
        if isinstance(limit, (int, float)) and not holds(size, limit):
            return False
    pattern = _pattern(parameter)
    return not isinstance(value, str) or pattern is None or bool(pattern.search(value))


def _pattern(parameter: Parameter) -> re.Pattern[str] | None:
    """The schema's pattern; None if there is none, or none that is safe to run.

    Repeated groups can take time without end on a few characters, and schemas may come from afar.
    """
    source = parameter.schema.get("pattern")
    if not isinstance(source, str) or _REPEATED_GROUP.search(source):
        return None
    try:
        return re.compile(source)
    except (re.error, RecursionError, OverflowError):
        return None


# --- exact evidence ---------------------------------------------------------------------------


def choice(parameter: Parameter, reading: Reading) -> object:
    """The enumerated value whose words all stand in the prompt: the longest, then the first."""
    at: dict[str, Word] = {}
    for word in reading.free(reading.words):
        at.setdefault(word.stem, word)
    ranked: list[tuple[int, int, int, list[Word]]] = []
    for index, value in enumerate(parameter.enum):
        wanted = [w.stem for w in words(str(value))]
        if wanted and not isinstance(value, bool) and all(one in at for one in wanted):
            spent = [at[one] for one in wanted]
            ranked.append((-len(wanted), spent[0].start, index, spent))
    if not ranked:
        return _month_choice(parameter, reading)
    *_, index, spent = min(ranked)
    reading.spend(*spent)
    return parameter.enum[index]


def _month_choice(parameter: Parameter, reading: Reading) -> object:
    digits = bool(parameter.parts & _MONTH)
    months = {month_of(str(value), digits=digits): value for value in parameter.enum}
    when = next((d for d in reading.free(reading.dates) if d.month in months), None)
    if when is None or None in months:
        return None
    reading.spend(when)
    return months[when.month]


def flag(parameter: Parameter, reading: Reading) -> bool | None:
    """True where the parameter's name is in the prompt, False where a "no" leads it."""
    wanted = parameter.parts - _FLAG_HELPERS
    hits = [i for i, word in enumerate(reading.words) if word.stem in wanted]
    if not wanted or {reading.words[i].stem for i in hits} != wanted:
        return None
    reading.spend(*(reading.words[i] for i in hits))
    return not any(w.folded in _NOT for w in reading.words[max(0, hits[0] - 2) : hits[0]])


def asks_for_date(parameter: Parameter) -> bool:
    """Whether a parameter wants a day, month or year: by format, name or description."""
    if parameter.kind == "integer":
        singular = not parameter.name.lower().endswith("s") or "mes" in parameter.parts
        return singular and bool(parameter.parts & (_MONTH | _YEAR | _DAY))
    bound = parameter.parts & (_START | _END) and parameter.kind == "string"
    return (
        parameter.schema.get("format") in _DATE_FORMATS
        or bool(parameter.parts & (_MONTH | _DATE) and parameter.kind == "string")
        or bool(bound and stems(parameter.doc) & name_stems("date fecha"))
        or "yyyy-mm" in parameter.doc.lower()
    )


def date_part(parameter: Parameter, reading: Reading) -> int | None:
    """A month's, year's or day's number, for an integer parameter that asks for it."""
    for names, part in ((_MONTH, "month"), (_YEAR, "year"), (_DAY, "day")):
        for when in reading.dates if parameter.parts & names and asks_for_date(parameter) else ():
            value = {"month": when.month, "year": when.year, "day": when.day}[part]
            if value is not None and fits(value, parameter):
                reading.spend(when)
                return value
    return None


def date_text(parameter: Parameter, reading: Reading) -> str | None:
    """A date as text, where it is asked for: the first one named, or the last for an end.

    A month stands for its first day, or its last for an end; a year does so for a start or an end.
    """
    form = parameter.schema.get("format")
    if not reading.dates or not asks_for_date(parameter):
        return None
    if parameter.parts & _MONTH and form not in _DATE_FORMATS:
        return _month_text(parameter, reading)
    is_end = bool(parameter.parts & _END)
    when = reading.dates[-1 if is_end else 0]
    day = when.last() if is_end else when.first()
    vague = when.month is None and not parameter.parts & (_START | _END)
    # An optional end says nothing where one day alone is named: "since 3 May" has no end.
    open_end = is_end and when.day and len(reading.dates) == 1 and not parameter.required
    if day is None or vague or open_end:
        return None
    reading.spend(when)
    return f"{day.isoformat()}T00:00:00" if form == "date-time" else day.isoformat()


def _month_text(parameter: Parameter, reading: Reading) -> str | None:
    """A month in the first form the pattern takes; without one as written, unless YYYY is wanted."""
    when = next((d for d in reading.dates if d.month), None)
    if when is None:
        return None
    iso = [f"{when.year:04}-{when.month:02}"] if when.year else []
    forms = [*iso, f"{when.month:02}", str(when.month)]
    if when.name:
        dated = _pattern(parameter) or "yyyy" in parameter.doc.lower()
        forms = [*forms, when.name] if _pattern(parameter) else [*(iso if dated else ()), when.name]
    found = next((form for form in forms if fits(form, parameter)), None)
    if found:
        reading.spend(when)
    return found


def number(parameter: Parameter, reading: Reading, *, named: bool) -> float | None:
    """A number within the bounds; with `named`, only one beside the parameter's name.

    A lone year is no number for an optional parameter that does not name it.
    """
    years = {when.start for when in reading.dates if not when.month}
    for one in reading.free(reading.numbers):
        value = one.value(whole=parameter.kind == "integer")
        beside = reading.near(one, parameter.parts)
        loose = not named and (parameter.required or one.start not in years)
        if value is not None and (beside or loose) and fits(value, parameter):
            reading.spend(one)
            return value
    return None


def shaped(parameter: Parameter, reading: Reading) -> Piece | None:
    """The first free quotation or token of the form the schema asks for, not spent yet.

    The form is the pattern's, else that of the codes among the examples and in the description:
    ``A-1042`` asks for letters, a dash, digits. A pattern may want the token in capitals.
    """
    test = _form(parameter)
    for piece in reading.free((*reading.quotes, *reading.tokens)):
        for text in (piece.text, piece.text.upper()):
            if test(text) and not text.isalpha():
                return Piece(text, piece.start, piece.end)
    return None


def takes_code(parameter: Parameter, reading: Reading) -> bool:
    """Whether the prompt holds a code this text parameter would take, by its form or its name."""
    if parameter.kind != "string" or parameter.enum:
        return False
    named = parameter.parts & _IDENTIFIER and any(map(is_code, reading.tokens))
    return bool(named) or shaped(parameter, reading) is not None


def _form(parameter: Parameter) -> Callable[[str], object]:
    pattern = _pattern(parameter)
    if pattern is not None:
        return pattern.search
    if parameter.schema.get("format") == "email" or "email" in parameter.parts:
        return lambda text: "@" in text
    examples = parameter.schema.get("examples")
    listed = map(str, examples) if isinstance(examples, (list, tuple)) else ()
    told = pieces(" ".join((*listed, parameter.doc)))
    shapes = {_shape(piece.text) for piece in told if is_code(piece)}
    return lambda text: _shape(text) in shapes


def _shape(text: str) -> str:
    return re.sub(r"\d+", "9", re.sub(r"[^\W\d_]+", "A", text))


# --- loose evidence ---------------------------------------------------------------------------


def code(parameter: Parameter, reading: Reading) -> str | None:
    """For a parameter named like an identifier: a code, else a number beside its name or alone."""
    if not parameter.parts & _IDENTIFIER:
        return None
    found = [*filter(is_code, reading.free(reading.tokens))]
    if not found:
        free = [*reading.free(reading.numbers)]
        beside = [one for one in free if reading.near(one, parameter.parts)]
        found = [Piece(n.text, n.start, n.end) for n in beside or (free if len(free) == 1 else ())]
    return _take(found, reading)


def quote(reading: Reading) -> str | None:
    """The next quoted text."""
    return _take([*reading.free(reading.quotes)], reading)


def _take(found: Sequence[Piece], reading: Reading) -> str | None:
    if not found:
        return None
    reading.spend(found[0])
    return found[0].text


def rest(names: frozenset[str], docs: frozenset[str], reading: Reading) -> str:
    """The content words left over, as written, without those of the names.

    Without dates and the words of the descriptions too, if then something is left.
    """
    left = [word for word in reading.content() if word.stem not in names]
    dated = [when for when in reading.dates if when.month]
    own = [word for word in left if word.stem not in docs and not any(d.start <= word.start < d.end for d in dated)]
    return " ".join(word.text for word in own or left)
