"""The chat model a deployment names."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence

from symfonic.host.structure import did_you_mean
from symfonic.kernel.errors import ConfigError

__all__ = ["construct", "import_class", "is_class_path"]

_CLASS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def is_class_path(use: str) -> bool:
    """Whether a text is spelt as ``module:Class``."""
    return _CLASS.fullmatch(use) is not None


def import_class(use: str, contributed: Sequence[str]) -> type:
    """The class ``module:Class`` names.

    Args:
        use: ``[model] use``, which named no contributed model.
        contributed: The ids selected plugins contribute, for the hint.

    Raises:
        ConfigError: It is not spelt so, the module cannot be imported, or has no such class.
    """
    if not is_class_path(use):
        raise ConfigError(
            [f"model.use: {use!r} is neither a selected plugin's model nor module:Class; {_hint(use, contributed)}"]
        )
    module_name, _, path = use.partition(":")
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise ConfigError(
                [f"model.use: importing {module_name} needs {error.name}, which is not installed"]
            ) from error
        raise ConfigError(
            [f"model.use: there is no module {module_name!r}; {_where(module_name)}, or {_hint(use, contributed)}"]
        ) from error
    except (Exception, SystemExit) as error:  # whatever a package does at import is told as its fault
        raise ConfigError([f"model.use: importing {module_name} raised {type(error).__name__}: {error}"]) from error
    for step in path.split("."):
        try:
            found = getattr(found, step)
        except AttributeError as error:
            names = [name for name in dir(found) if not name.startswith("_")]
            raise ConfigError([f"model.use: {module_name} has no {path}; {did_you_mean(step, names)}"]) from error
        except Exception as error:  # a module may import its classes only now
            raise ConfigError([f"model.use: importing {use} raised {type(error).__name__}: {error}"]) from error
    if not isinstance(found, type):
        raise ConfigError([f"model.use: {use} is a {type(found).__name__}, wanted a chat model class"])
    return found


def _where(module_name: str) -> str:
    """How to get a module. Only LangChain's own packages are named after their modules; any other name is not guessed."""
    package = module_name.partition(".")[0]
    if package.startswith("langchain_"):
        return f"pip install {package.replace('_', '-')}"
    return "install the package that brings it; for a plugin's model, select the plugin with a [[plugin]] block"


def _hint(use: str, contributed: Sequence[str]) -> str:
    return did_you_mean(use, contributed) if contributed else "select a plugin that contributes models"


def construct(model_class: type, options: Mapping[str, object]) -> object:
    """An instance of a chat model class.

    Raises:
        ConfigError: The class refuses its options. No option's value is shown, since one may be a key.
    """
    try:
        return model_class(**options)
    except Exception as error:  # noqa: BLE001  # the fault boundary of the model's class
        problems = _validation_problems(error) or [f"{type(error).__name__}: {error}"]
        shown = [_without_values(problem, options) for problem in problems]
        raise ConfigError([f"model.options: {model_class.__name__}: {problem}" for problem in shown]) from None


def _validation_problems(error: Exception) -> list[str]:
    """What pydantic found, without the inputs it would print."""
    errors = getattr(error, "errors", None)  # pydantic's ValidationError, told apart without importing pydantic
    if not callable(errors):
        return []
    return [f"{'.'.join(map(str, found['loc'])) or 'options'}: {found['msg']}" for found in errors(include_input=False)]


def _without_values(text: str, options: object) -> str:
    """A text without any of the options' own texts, at any depth."""
    if isinstance(options, Mapping):
        options = list(options.values())
    if isinstance(options, list):
        for value in options:
            text = _without_values(text, value)
    elif isinstance(options, str) and len(options) > 3:  # shorter ones are words, not keys
        text = text.replace(options, "...")
    return text
