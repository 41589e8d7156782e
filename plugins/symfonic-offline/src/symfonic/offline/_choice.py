"""Which of the bound tools a prompt fits best, by the words they share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import attrs

from symfonic.offline._arguments import Arguments, fill, missing
from symfonic.offline._evidence import asks_for_date, takes_code
from symfonic.offline._offered import Parameter, Tool
from symfonic.offline._reading import Reading
from symfonic.offline._text import NOT_TELLING, STOP_WORDS, name_stems, stems

_NAME, _TEXT, _PARAMETER, _PARAMETER_TEXT = 2.0, 1.0, 1.0, 0.5
"""What a shared word weighs, by where the tool has it; enumerated values weigh as names of parameters."""

_CODE, _DATE, _ARGUMENT = 2.0, 1.0, 0.5
"""What a code of the form a tool asks for adds, a date for a tool that takes one, an argument found."""

_SURE = 2.0
"""Weight that is a fit however long the prompt; one word of the description is not."""

_SHARE = 1 / 3
"""Share of the prompt's words that makes a lesser weight a fit."""

_TRIED = 10
"""How many of the best fits get arguments."""

_CLOSE = 0.6
"""A tool this near the best is taken before it if only its arguments are complete."""


@attrs.frozen
class Fit:
    """A tool, how well it fits, whether that is enough, and the arguments for it; whether another fits as well."""

    tool: Tool
    score: float
    enough: bool
    arguments: Arguments
    tied: bool = False

    @property
    def missing(self) -> tuple[str, ...]:
        """The required parameters nothing in the prompt speaks for."""
        return missing(self.tool, self.arguments)


def choose(tools: Sequence[Tool], reading: Reading) -> Fit | None:
    """The best fit, good enough or not; None only without tools. Of equals the first one bound, told as tied."""
    weights = [_weights(tool) for tool in tools]
    holders = Counter(word for words in weights for word in words)
    rarity = {word: 1 + math.log(len(tools) / count) for word, count in holders.items()}
    mean = holders.total() / max(1, len(tools)) or 1
    fits = [_fit(*pair, rarity, reading, mean) for pair in zip(tools, weights, strict=True)]
    tried = [_with_arguments(fit, reading) for fit in sorted(fits, key=_rank)[:_TRIED]]
    tried.sort(key=_rank)
    near = [fit for fit in tried if fit.enough == tried[0].enough and fit.score >= _CLOSE * tried[0].score]
    best = next((fit for fit in near if not fit.missing), tried[0] if tried else None)
    if best is None:
        return None
    return attrs.evolve(best, tied=any(fit is not best and _equal(fit, best) for fit in near))


def _equal(one: Fit, other: Fit) -> bool:
    return math.isclose(one.score, other.score) and bool(one.missing) == bool(other.missing)


def _rank(fit: Fit) -> tuple[bool, float]:
    return not fit.enough, -fit.score


def _with_arguments(fit: Fit, reading: Reading) -> Fit:
    arguments = fill(fit.tool, reading)
    return attrs.evolve(fit, arguments=arguments, score=fit.score + _ARGUMENT * len(arguments))


def _fit(tool: Tool, weights: Mapping[str, float], rarity: Mapping[str, float], reading: Reading, mean: float) -> Fit:
    """How well a tool fits.

    Codes and dates only add to words: alone they fit too many tools. So do the words of parameters: that "late" may be
    the reason for a refund does not make a refund of every delay.
    """
    asked = _asked(reading)
    shared = sorted(asked & weights.keys())
    extra = _CODE * any(takes_code(p, reading) for p in tool.parameters)
    extra += _DATE * (bool(reading.dates) and any(map(asks_for_date, tool.parameters)))
    weight = sum(weights[word] for word in shared)
    broad = weight >= 1 and len(shared) >= _SHARE * len(asked)
    score = sum(weights[word] * rarity[word] for word in shared) / (0.75 + 0.25 * len(weights) / mean)
    named = not asked.isdisjoint(name_stems(tool.name) | stems(tool.description))
    return Fit(tool, score + extra, named and (broad or weight + extra >= _SURE), {})


def _asked(reading: Reading) -> frozenset[str]:
    """The prompt's content words, without bare numbers; of a prompt that has none, all its words."""
    telling = [word for word in reading.words if len(word.text) > 1 and not word.text.isdecimal()]
    content = [word for word in telling if word.folded not in NOT_TELLING]
    return frozenset(word.stem for word in content or telling)


def _weights(tool: Tool) -> Mapping[str, float]:
    """What each word of a tool's schema weighs: its highest place counts."""
    weights: dict[str, float] = {}

    def add(found: frozenset[str], weight: float) -> None:
        for word in found:
            weights[word] = max(weight, weights.get(word, 0))

    add(name_stems(tool.name), _NAME)
    add(stems(tool.description), _TEXT)
    pending: list[Parameter] = list(tool.parameters)
    while pending:
        parameter = pending.pop()
        pending.extend(parameter.fields)
        add(parameter.parts - STOP_WORDS, _PARAMETER)
        add(stems(parameter.doc), _PARAMETER_TEXT)
        add(stems(" ".join(map(str, parameter.enum))), _PARAMETER)
    return weights
