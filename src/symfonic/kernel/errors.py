"""Every error of symfonic, in one tree drawn by whose fault it is.

::

    SymfonicError
    ├── HostError                     the deployment asked for something that cannot be
    │   ├── ConfigError               symfonic.toml, options, environment
    │   ├── PlanRefused               an ExceptionGroup: every PlanError of one compile
    │   ├── PlanError                 one declaration that compile refuses
    │   │   ├── ToolNameError  StageError  EffectError  HandlerError  OrderError  LimitError
    │   ├── HandlersRefused           handlers handed to a runner that may not be added
    │   ├── WorkersExhausted          too many abandoned sync calls still block their threads
    │   ├── HistoryError              a history that holds what is no message
    │   ├── DocumentError             a kept result or conversation that cannot be read back
    │   ├── GenerationBound           a turn is tied to a plan generation once
    │   ├── SinkFailed                event sinks that lost events, in words fit to be shown
    │   ├── InsideRunningLoop         run_turn_sync was called where a loop runs already
    │   └── HostClosed                a turn was asked of a host that is not open
    ├── PluginError                   a plugin broke a rule (plugin id and distribution named)
    │   ├── PluginsRefused            an ExceptionGroup: every problem of one start, a plugin's among them
    │   ├── OutcomeRefused            an outcome beyond what its stage declared
    │   └── StageCrashed              a stage failed or was denied; carries the traces
    ├── ModelFailed                   the chat model raised, hung or answered nonsense
    ├── PaletteError                  a tool name or force that cannot be offered
    └── TurnFailed                    a turn ended by one of the above; carries the result so far

Tools have no class here: a failing tool never ends a turn, the model gets an error result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from symfonic.kernel._result import TurnResult
    from symfonic.kernel.dispatch import StageTrace
    from symfonic.kernel.phases import Phase

__all__ = [
    "ConfigError",
    "DocumentError",
    "EffectError",
    "GenerationBound",
    "HandlerError",
    "HandlersRefused",
    "HistoryError",
    "HostClosed",
    "HostError",
    "InsideRunningLoop",
    "LimitError",
    "ModelFailed",
    "OrderError",
    "OutcomeRefused",
    "PaletteError",
    "PlanError",
    "PlanRefused",
    "PluginError",
    "PluginsRefused",
    "SinkFailed",
    "StageCrashed",
    "StageError",
    "SymfonicError",
    "ToolNameError",
    "TurnFailed",
    "WorkersExhausted",
]


class SymfonicError(Exception):
    """The root: catch it to catch everything symfonic raises on purpose."""


class HostError(SymfonicError):
    """The deployment, or the code that composes, asked for something that cannot be."""


class ConfigError(HostError, ValueError):
    """A configuration that cannot be used; ``problems`` lists every finding.

    Args:
        problems: One text a finding, each with key path, got, wanted and way out.
        source: Where the configuration came from, a path or "compose(...)".
    """

    def __init__(self, problems: Sequence[str], *, source: str = "") -> None:
        self.problems = tuple(problems)
        self.source = source
        head = f"{source}: " if source else ""
        count = len(self.problems)
        body = self.problems[0] if count == 1 else f"{count} problems\n" + "\n".join(f"  - {p}" for p in self.problems)
        super().__init__(head + body)


class PlanError(HostError, ValueError):
    """One declaration that ``compile_plan`` refuses.

    Args:
        message: Got, wanted, way out.
        subjects: Names of the tools or stages it is about, so that the host can say whose they are.
    """

    def __init__(self, message: str, *, subjects: Sequence[str] = ()) -> None:
        self.subjects = tuple(subjects)
        super().__init__(message)


class ToolNameError(PlanError):
    """A tool whose name is missing, doubled, reserved or unfit to be sent."""


class StageError(PlanError):
    """A stage that is declared wrongly: its name, phase, capability, timeout or on_crash."""


class EffectError(PlanError):
    """An effect that is unknown, of another phase, or not granted."""


class HandlerError(PlanError):
    """A stage without handler, a handler without stage, or something that cannot be called."""


class OrderError(PlanError):
    """before/after that name an unknown stage, or stages that wait for each other."""


class LimitError(PlanError):
    """A limit that is no positive number."""


class PlanRefused(HostError, ExceptionGroup[PlanError], ValueError):
    """Everything compile found wrong, in one error.

    Its text holds every finding, so that printing it is enough.
    """

    def __new__(cls, problems: Sequence[PlanError]) -> Self:
        """Build the group; the message is made from the problems."""
        return super().__new__(cls, _summary("the plan is refused", problems), list(problems))

    def __init__(self, problems: Sequence[PlanError]) -> None:
        super().__init__(_summary("the plan is refused", problems), list(problems))

    def derive(self, excs: Sequence[PlanError]) -> PlanRefused:  # type: ignore[override]  # split() keeps our class
        """Keep the class when ``except*`` splits the group."""
        return PlanRefused(excs)

    def __str__(self) -> str:
        """All findings, one a line."""
        return _summary("the plan is refused", self.exceptions)


class HandlersRefused(HostError, ValueError):
    """Handlers handed to a runner that the plan binds already, or that belong to no stage."""


class WorkersExhausted(HostError, RuntimeError):
    """Too many sync calls were abandoned and still block their threads."""


class HistoryError(HostError, ValueError):
    """A history that holds what is no message."""


class DocumentError(HostError, ValueError):
    """A kept result or conversation that cannot be read back; its text names the key and shows no value.

    Args:
        problem: Key path, got and wanted.
        source: Where the document came from, such as a path.
    """

    def __init__(self, problem: str, *, source: str = "") -> None:
        self.problem = problem
        self.source = source
        super().__init__(f"{source}: {problem}" if source else problem)


class GenerationBound(HostError, RuntimeError):
    """A turn is tied to the plan generation it began with, once."""


class SinkFailed(HostError):
    """An event sink that stands for others tells what they lost; the kernel counts it and tells it as a degradation.

    Args:
        losses: What went wrong, in words that name sinks and types of errors and show no text of theirs, to how many
            events were lost by it.
    """

    def __init__(self, losses: Mapping[str, int]) -> None:
        self.losses = dict(losses)
        super().__init__("; ".join(self.losses))


class InsideRunningLoop(HostError, RuntimeError):
    """``run_turn_sync`` was called on a thread whose event loop is running."""


class HostClosed(HostError, RuntimeError):
    """A turn was asked of a host that was not entered, or has been left."""


class PaletteError(SymfonicError, ValueError):
    """A tool name or a force that cannot be offered; the text names the valid ones."""


class PluginError(SymfonicError):
    """A plugin broke a rule.

    Args:
        message: Got, wanted, consequence, way out.
        plugin: The plugin's id, when the host knows it.
        dist: Distribution and version that supplied it, when the host knows it.
        reason: The reason code: missing, ambiguous, incompatible, import-failed, invalid-hooks,
            conflicting, misconfigured or failed.
    """

    reason: str = "failed"

    def __init__(self, message: str, *, plugin: str = "", dist: str = "", reason: str = "failed") -> None:
        self.plugin = plugin
        self.dist = dist
        self.reason = reason
        supplier = f" ({dist})" if dist else ""
        head = f"plugin {plugin!r}{supplier}, {reason}: " if plugin else ""
        super().__init__(head + message)


class PluginsRefused(PluginError, ExceptionGroup[SymfonicError]):
    """Every problem of one start of which at least one is a plugin's, in one error."""

    def __new__(cls, problems: Sequence[SymfonicError]) -> Self:
        """Build the group; the message is made from the problems."""
        return super().__new__(cls, _summary("the deployment is refused", problems), list(problems))

    def __init__(self, problems: Sequence[SymfonicError]) -> None:
        super().__init__(_summary("the deployment is refused", problems))

    def derive(self, excs: Sequence[SymfonicError]) -> PluginsRefused:  # type: ignore[override]  # split() keeps our class
        """Keep the class when ``except*`` splits the group."""
        return PluginsRefused(excs)

    def __str__(self) -> str:
        """All findings, one a line."""
        return _summary("the deployment is refused", self.exceptions)


class OutcomeRefused(PluginError):
    """An outcome goes beyond the effects its stage declared."""


class StageCrashed(PluginError):
    """One or more stages of a phase failed or were denied (STG-9).

    Args:
        phase: The phase that was run.
        crashed: The traces of the crashed stages, in program order, never empty.
        traces: Every trace of the phase.
    """

    def __init__(self, phase: Phase | str, crashed: Sequence[StageTrace], traces: Sequence[StageTrace]) -> None:
        self.phase = phase
        self.crashed = tuple(crashed)
        self.traces = tuple(traces)
        causes = "; ".join(
            f"stage {t.stage.name!r} {t.status}: {t.error}{f' at {t.where}' if t.where else ''}" for t in self.crashed
        )
        super().__init__(f"phase {phase!s} crashed: {causes}")


class ModelFailed(SymfonicError):
    """The chat model raised, hung past its timeout, or answered something that is no AI message.

    The text holds the cause's type only, since a provider's message may hold a key;
    the cause itself is chained.
    """


class TurnFailed(SymfonicError):
    """A turn that ended by a fault. ``__cause__`` is the fault, ``result`` everything so far.

    Args:
        message: What ended the turn.
        result: The result so far, valid as history.
    """

    def __init__(self, message: str, result: TurnResult) -> None:
        self.result = result
        super().__init__(message)


def _summary(head: str, problems: Sequence[Exception]) -> str:
    if len(problems) == 1:
        return f"{head}: {problems[0]}"
    return f"{head}, {len(problems)} problems:\n" + "\n".join(f"  - {problem}" for problem in problems)
