"""From selected ids to loaded plugins: found, imported, checked, their hooks called one at a time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType

import attrs
import pluggy

from symfonic.host.config import PluginTable, is_plugin_id
from symfonic.host.discovery import InstalledPlugin, kernel_version, normal_name
from symfonic.host.provenance import Contributor
from symfonic.host.structure import did_you_mean, structure
from symfonic.kernel._where import at_line
from symfonic.kernel.errors import PluginError
from symfonic.plugin import API_VERSION, HookContext, HookSpecs, StageHandler
from symfonic.plugin._descriptors import Contribution
from symfonic.plugin._hooks import HOOK_KINDS, PROJECT

__all__ = ["LoadedPlugin", "Source", "find_plugin", "load_plugins"]

_PREFIX = "symfonic_"
_ID_RULE = "small letters, digits and hyphens, a letter first"


@attrs.frozen(kw_only=True)
class Source:
    """Where a selected plugin comes from.

    Args:
        table: Its block in the file, or what ``Use`` said.
        load: Imports its module.
        contributor: Who supplies it.
        entry_point: The entry point's value, or the module's name.
        grants_declared: Whether its stages are granted what they declare, beside what the table grants.
    """

    table: PluginTable
    load: Callable[[], object]
    contributor: Contributor
    entry_point: str = ""
    grants_declared: bool = False


@attrs.frozen(kw_only=True)
class LoadedPlugin:
    """A plugin whose module is imported, whose hooks were called, whose configuration fits.

    Args:
        source: Where it comes from.
        contributions: What its hooks returned, in the order of the hooks.
        config: An instance of its config class, or None.
        config_class: The class, or None.
    """

    source: Source
    contributions: tuple[Contribution, ...]
    config: object = None
    config_class: type | None = None

    @property
    def id(self) -> str:
        """The id it is selected under."""
        return self.source.table.id

    @property
    def contributor(self) -> Contributor:
        """Who supplies it."""
        return self.source.contributor

    @property
    def grants(self) -> frozenset[str]:
        """The effects its stages may have."""
        declared: set[str] = set()
        if self.source.grants_declared:
            declared.update(*(given.effects for given in self.contributions if isinstance(given, StageHandler)))
        return frozenset(declared) | frozenset(self.source.table.grants)


def _error(source: Source, message: str, reason: str) -> PluginError:
    contributor = source.contributor
    dist = f"{contributor.dist} {contributor.version}" if contributor.dist else ""
    return PluginError(message, plugin=source.table.id, dist=dist, reason=reason)


def find_plugin(table: PluginTable, installed: Sequence[InstalledPlugin]) -> Source:
    """The installed plugin a block selects.

    Raises:
        PluginError: missing, ambiguous, or incompatible; found from metadata alone, before anything is imported.
    """
    same_id = [plugin for plugin in installed if plugin.id == table.id]
    wanted = same_id if table.dist is None else [p for p in same_id if p.dist == normal_name(table.dist)]
    if not wanted:
        raise PluginError(_missing(table, same_id, installed), plugin=table.id, reason="missing")
    if len(wanted) > 1:
        suppliers = ", ".join(f"{plugin.label} ({plugin.location})" for plugin in wanted)
        message = f'{len(wanted)} distributions supply it: {suppliers}; say which with dist = "..."'
        raise PluginError(message, plugin=table.id, reason="ambiguous")
    found = wanted[0]
    if found.others:
        message = f"its metadata lies in several versions: {', '.join((found.location, *found.others))}; remove the stale ones"
        raise PluginError(message, plugin=table.id, dist=found.label, reason="ambiguous")
    _check_versions(table, found)
    contributor = Contributor(found.id, found.dist, found.version)
    return Source(table=table, load=found.entry_point.load, contributor=contributor, entry_point=found.module)


def _missing(table: PluginTable, same_id: Sequence[InstalledPlugin], installed: Sequence[InstalledPlugin]) -> str:
    if same_id:
        return f"{table.dist} does not supply it; installed from: {', '.join(plugin.label for plugin in same_id)}"
    what = f"pip install {table.dist}" if table.dist else "pip install the distribution that brings it"
    hint = did_you_mean(table.id, [p.id for p in installed])
    return f"no installed distribution supplies it; {hint}{'' if hint.endswith('?') else ';'} else {what}"


def _check_versions(table: PluginTable, found: InstalledPlugin) -> None:
    # Only selected plugins pay for packaging.
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415

    running = kernel_version()
    required = found.kernel_requirement()
    if required is not None and not SpecifierSet(required).contains(running, prereleases=True):
        message = f"it requires symfonic-kernel {required}, {running} is running; install versions that fit"
        raise PluginError(message, plugin=table.id, dist=found.label, reason="incompatible")
    if table.version is not None and not SpecifierSet(table.version).contains(found.version, prereleases=True):
        message = f"version {found.version} is installed, the deployment wants {table.version}; install one that fits"
        raise PluginError(message, plugin=table.id, dist=found.label, reason="incompatible")


def load_plugins(
    sources: Iterable[Source], *, configured: bool = True
) -> tuple[tuple[LoadedPlugin, ...], tuple[PluginError, ...]]:
    """Import, check and ask the selected plugins, in order. One broken plugin takes down no other.

    Args:
        sources: Where they come from.
        configured: Whether their configuration must fit; False for who is yet to write it.

    Returns:
        The plugins that loaded whole, and the problems of the others.
    """
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(HookSpecs)
    problems: list[PluginError] = []
    registered: list[Source] = []
    for source in sources:
        found = _register(manager, source)
        problems.extend(found)
        if not found:
            registered.append(source)
    loaded: list[LoadedPlugin] = []
    for source in registered:
        try:
            loaded.append(_ask(manager, source, configured=configured))
        except PluginError as error:
            problems.append(error)
        except ExceptionGroup as group:
            problems.extend(group.exceptions)  # type: ignore[arg-type]  # only PluginErrors are put into it
    return tuple(loaded), tuple(problems)


def _register(manager: pluggy.PluginManager, source: Source) -> list[PluginError]:
    try:
        module = source.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001  # the fault boundary of imports; sys.exit() at import counts too
        return [_error(source, f"importing {source.entry_point} raised {_raised(error)}", "import-failed")]
    if not isinstance(module, ModuleType):
        text = f"its entry point {source.entry_point} is a {type(module).__name__}, wanted a module"
        return [_error(source, text, "invalid-hooks")]
    problems = [_error(source, text, "invalid-hooks") for text in _hook_problems(module)]
    if problems:
        return problems
    try:
        manager.register(module, name=source.table.id)
        manager.check_pending()
    except Exception as error:  # noqa: BLE001  # pluggy's own refusals, whatever their class
        if manager.has_plugin(source.table.id):
            manager.unregister(name=source.table.id)
        return [_error(source, str(error), "invalid-hooks")]
    return []


def _hook_problems(module: ModuleType) -> list[str]:
    """What pluggy would pass over in silence."""
    problems: list[str] = []
    hooks = 0
    for name, value in vars(module).items():
        if not inspect.isroutine(value):
            if name in HOOK_KINDS:
                problems.append(f"{name} is a {type(value).__name__}; make it a plain def")
            continue
        marker = getattr(value, f"{PROJECT}_impl", None)  # set by @hookimpl on a plugin's function
        if marker is None:
            if name.startswith(_PREFIX):
                problems.append(f"{name} is not marked; put @hookimpl above it, or rename it")
            continue
        hooks += 1
        problems.extend(_hook_fault(name, value, marker))
    if not hooks and not problems:
        problems.append(f"{module.__name__} implements no hook; known: {', '.join(sorted(HOOK_KINDS))}")
    return problems


def _hook_fault(name: str, function: Callable[..., object], marker: dict[str, object]) -> list[str]:
    hook = str(marker.get("specname") or name)
    if hook not in HOOK_KINDS:
        return [f"{name} is no hook; {did_you_mean(hook, HOOK_KINDS)}"]
    if marker.get("wrapper") or marker.get("hookwrapper"):
        return [f"{name} wraps other plugins' hooks, which is not supported; return contributions of your own"]
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return [f"{name} is an async function, which nobody would await; make it a plain def"]
    if inspect.isgeneratorfunction(function):
        return [f"{name} is a generator; return a list"]
    parameters = inspect.signature(function).parameters
    if list(parameters) != ["context"]:
        return [f"{name} takes ({', '.join(parameters)}); wanted one argument named context"]
    if str(parameters["context"]).partition(":")[0] != "context" or "=" in str(parameters["context"]):
        return [f"{name} takes ({parameters['context']}); wanted one plain argument, context, without a default"]
    return []


def _raised(error: BaseException) -> str:
    """Type, text and the plugin's own line of an error; its text may be impossible to make."""
    try:
        return f"{type(error).__name__}: {error}{at_line(error)}"
    except Exception:  # noqa: BLE001  # a plugin's own exception class, which may be broken too
        return f"{type(error).__name__}{at_line(error)}"


def _ask(manager: pluggy.PluginManager, source: Source, *, configured: bool) -> LoadedPlugin:
    """Call one plugin's hooks and check what they return, and its configuration."""
    others = [plugin for name, plugin in manager.list_name_plugin() if name != source.table.id and plugin is not None]
    context = HookContext(source.table.id, kernel_version(), API_VERSION)
    contributions: list[Contribution] = []
    problems: list[str] = []
    for hook, kind in HOOK_KINDS.items():
        caller = manager.subset_hook_caller(hook, remove_plugins=others)
        try:
            answers = caller(context=context)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # the fault boundary of hooks
            problems.append(f"{hook} raised {_raised(error)}")
            continue
        for answer in answers:
            problems.extend(_answer_problems(hook, kind, answer))
            contributions.extend(answer if isinstance(answer, list | tuple) else ())
    problems = problems or _contribution_problems(contributions)
    if problems:
        message = "several hooks are invalid"
        raise ExceptionGroup(message, [_error(source, text, "invalid-hooks") for text in problems])
    return _configured(source, tuple(contributions), configured=configured)


def _answer_problems(hook: str, kind: type[Contribution], answer: object) -> list[str]:
    wanted = f"a list of {kind.__name__}"
    if not isinstance(answer, list | tuple):
        return [f"{hook} returned a {type(answer).__name__}, wanted {wanted} or None"]
    return [
        f"{hook} returned a list with a {type(item).__name__} in it, wanted {wanted}"
        for item in answer
        if not isinstance(item, kind)
    ]


def _contribution_problems(contributions: Sequence[Contribution]) -> list[str]:
    problems: list[str] = []
    seen: list[tuple[type, str]] = []
    unfit: list[object] = []
    for given in contributions:
        who = f"{type(given).__name__} {given.id!r}"
        if not isinstance(given.id, str) or not is_plugin_id(given.id):
            problems.append(f"{who}: an id is {_ID_RULE}")
        if (type(given), given.id) in seen:
            problems.append(f"{who} is returned twice; give each an id of its own")
        seen.append((type(given), given.id))
        if not callable(given.factory):
            problems.append(f"{who}: its factory is a {type(given.factory).__name__}, which cannot be called")
        no_attrs = given.config is not None and not (isinstance(given.config, type) and attrs.has(given.config))
        if no_attrs and not any(given.config is told for told in unfit):
            problems.append(f"{who}: its config is {given.config!r}, wanted an attrs class")
            unfit.append(given.config)
    classes = {given.config for given in contributions if isinstance(given.config, type)}
    if len(classes) > 1:
        named = ", ".join(sorted(str(getattr(c, "__name__", c)) for c in classes))
        problems.append(f"its contributions name several config classes, {named}; a plugin has one")
    return problems


def _configured(source: Source, contributions: tuple[Contribution, ...], *, configured: bool) -> LoadedPlugin:
    config_class = next((given.config for given in contributions if given.config is not None), None)
    if not configured:
        return LoadedPlugin(source=source, contributions=contributions, config_class=config_class)
    table = source.table.config
    if config_class is None:
        if table:
            text = f"plugin.config: it takes no configuration, got {', '.join(sorted(table))}; drop the table"
            raise _error(source, text, "misconfigured")
        return LoadedPlugin(source=source, contributions=contributions)
    config, problems = structure(table, config_class, "plugin.config")
    if problems:
        message = "its configuration does not fit"
        raise ExceptionGroup(message, [_error(source, text, "misconfigured") for text in problems])
    return LoadedPlugin(source=source, contributions=contributions, config=config, config_class=config_class)
