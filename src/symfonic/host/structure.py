"""Tables into attrs classes, strictly: every problem with its key's path, and a did-you-mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Literal, TypeVar, get_args, get_origin

import attrs
from cattrs import Converter
from cattrs.errors import ClassValidationError, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn

__all__ = ["did_you_mean", "structure"]

T = TypeVar("T")

_WANTED: dict[type, str] = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
_KINDS = {str: "a text", int: "a whole number", float: "a number", list: "a list", dict: "a table"}

MAX_LISTED = 12
"""Known names a hint lists when none is near; more would not be read."""


def structure(table: Mapping[str, object], into: type[T], path: str = "") -> tuple[T | None, list[str]]:
    """Make an instance of an attrs class from a table.

    Args:
        table: As TOML has it.
        into: The attrs class.
        path: The table's own key path, put before every problem's.

    Returns:
        The instance and no problems, or None and every problem, each with key path, got, wanted and way out.
    """
    try:
        return _converter.structure(table, into), []
    except Exception as error:  # noqa: BLE001  # a plugin's own config class may raise anything
        return None, list(_problems(error, path))


def did_you_mean(got: str, known: Iterable[str], elsewhere: str = "see the reference for what is known") -> str:
    """A hint for a name that is not known: the nearest one, all of them when they are few, else where they stand."""
    names = sorted(str(name) for name in known)
    close = get_close_matches(got, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    if not names:
        return "none is known"
    return f"known: {', '.join(names)}" if len(names) <= MAX_LISTED else elsewhere


def _kind(value: object) -> str:
    """What a value is, without showing it: it may be a secret."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def _scalar(kind: type) -> Callable[[object, object], object]:
    def check(value: object, _: object) -> object:
        fits = isinstance(value, kind) or (kind is float and isinstance(value, int))
        if not fits or (isinstance(value, bool) and kind is not bool):
            message = f"is {_kind(value)}, wanted {_WANTED[kind]}"
            raise TypeError(message)
        return kind(value)

    return check


class _Inside(Exception):
    """Problems inside a list or a table, each with the step that leads to it."""

    def __init__(self, found: list[tuple[str, Exception]]) -> None:
        self.found = found
        super().__init__()


def _sequence(value: object, wanted: object) -> object:
    """A list into a tuple; a bare text is one item, not its letters."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list | tuple):
        message = f"is {_kind(value)}, wanted a list"
        raise TypeError(message)
    args = [arg for arg in get_args(wanted) if arg is not Ellipsis] or [object]
    return tuple(_each([(f"[{place}]", item) for place, item in enumerate(value, start=1)], args[0]).values())


def _table(value: object, wanted: object) -> object:
    if not isinstance(value, Mapping):
        message = f"is {_kind(value)}, wanted a table"
        raise TypeError(message)
    args = get_args(wanted)
    return _each([(str(key), item) for key, item in value.items()], args[1] if args else object)


def _each(items: list[tuple[str, object]], wanted: object) -> dict[str, object]:
    made: dict[str, object] = {}
    found: list[tuple[str, Exception]] = []
    for step, item in items:
        try:
            made[step] = _converter.structure(item, wanted)  # type: ignore[arg-type]  # any type cattrs can structure
        except Exception as error:  # noqa: BLE001  # collected, and told with its path
            found.append((step, error))
    if found:
        raise _Inside(found)
    return made


def _literal(value: object, wanted: object) -> object:
    choices = get_args(wanted)
    if not any(value == choice and type(value) is type(choice) for choice in choices):
        shown = repr(value) if isinstance(value, str) else _kind(value)
        message = f"is {shown}, wanted one of {', '.join(map(str, choices))}"
        raise ValueError(message)
    return value


def _class(wanted: type[T]) -> Callable[[object, type[T]], T]:
    fill = make_dict_structure_fn(wanted, _converter, _cattrs_forbid_extra_keys=True)

    def check(value: object, into: type[T]) -> T:
        if not isinstance(value, Mapping):
            message = f"is {_kind(value)}, wanted a table"
            raise TypeError(message)
        return fill(value, into)

    return check


def _is_sequence(wanted: object) -> bool:
    return (get_origin(wanted) or wanted) is tuple


def _is_literal(wanted: object) -> bool:
    origin: object = get_origin(wanted)
    return origin is Literal


def _is_mapping(wanted: object) -> bool:
    origin = get_origin(wanted) or wanted
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _make_converter() -> Converter:
    converter = Converter(forbid_extra_keys=True, detailed_validation=True)
    for kind in _WANTED:
        converter.register_structure_hook(kind, _scalar(kind))
    converter.register_structure_hook_func(lambda wanted: wanted is object, lambda value, _: value)
    converter.register_structure_hook_func(_is_sequence, _sequence)
    converter.register_structure_hook_func(_is_literal, _literal)
    converter.register_structure_hook_func(_is_mapping, _table)
    converter.register_structure_hook_factory(lambda wanted: isinstance(wanted, type) and attrs.has(wanted), _class)
    return converter


_converter = _make_converter()


def _problems(error: BaseException, path: str) -> Iterator[str]:
    if isinstance(error, ClassValidationError):
        with_notes, without = error.group_exceptions()
        for sub, note in with_notes:
            yield from _problems(sub, _join(path, note.name))
        for sub in without:
            yield from _problems(sub, path)
    elif isinstance(error, _Inside):
        for step, sub in error.found:
            yield from _problems(sub, f"{path}{step}" if step.startswith("[") else _join(path, step))
    elif isinstance(error, ForbiddenExtraKeysError):
        known = [field.alias for field in attrs.fields(error.cl) if field.init]
        for name in sorted(map(str, error.extra_fields)):
            yield f"{_join(path, name)}: unknown key; {did_you_mean(name, known)}"
    elif isinstance(error, KeyError) and error.args and path.endswith(str(error.args[0])):
        yield f"{path}: missing; give it a value"
    else:
        yield f"{path or 'configuration'}: {_text(error)}"


def _text(error: BaseException) -> str:
    """An error's text; of one of attrs' validators its sentence alone, without the value, which may be a secret."""
    if len(error.args) > 1 and isinstance(error.args[0], str):
        return error.args[0].replace(repr(error.args[-1]), _kind(error.args[-1]))
    return str(error) or type(error).__name__


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
