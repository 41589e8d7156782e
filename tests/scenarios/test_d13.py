"""D13: hooks that pluggy would pass over in silence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.host.support import FakeSite, make_site, model_source

FAULTS = {
    "misspelt": (
        "def symfonic_tool(context):\n    return []",
        "symfonic_tool is no hook; did you mean 'symfonic_tools'?",
    ),
    "is-async": ("async def symfonic_tools(context):\n    return []", "symfonic_tools is an async function"),
    "wrong-argument": (
        "def symfonic_tools(plugin):\n    return []",
        "symfonic_tools takes (plugin); wanted one argument named context",
    ),
    "extra-argument": ("def symfonic_tools(context, more=1):\n    return []", "symfonic_tools takes (context, more)"),
    "default-context": (
        "def symfonic_tools(context=None):\n    return []",
        "symfonic_tools takes (context=None); wanted one plain argument, context, without a default",
    ),
    "wrong-type": (
        "def symfonic_tools(context):\n    return {'a': 1}",
        "symfonic_tools returned a dict, wanted a list of Tools or None",
    ),
    "wrong-item": (
        "def symfonic_tools(context):\n    return [print]",
        "symfonic_tools returned a list with a builtin_function_or_method in it",
    ),
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSite]:
    """A fake site on ``sys.path``."""
    yield from make_site(tmp_path / "site", monkeypatch)


def test_d13_every_fault_is_a_named_error_and_all_stand_in_one_report(site: FakeSite) -> None:
    """Misspelt, async, wrong argument, wrong return type, each in a plugin of its own: one report, exit code 3, no warning."""
    site.plugin("said", model_source())
    for plugin, (source, _) in FAULTS.items():
        site.plugin(plugin, f"@hookimpl\n{source}\n")
    site.plugin("unmarked", "def symfonic_tools(context):\n    return []\n")
    blocks = "".join(f'[[plugin]]\nid = "{one}"\n' for one in ("said", *FAULTS, "unmarked"))
    site.deployment(f'[model]\nuse = "said:scripted"\n{blocks}')
    done = site.run("-W", "error", "-c", "from symfonic.host.cli import main; main()", "run", "hi")
    assert (done.returncode, done.stdout) == (3, b"")
    lines = done.stderr.decode().splitlines()
    assert lines[0] == f"error: the deployment is refused, {len(FAULTS) + 1} problems:"
    assert len(lines) == len(FAULTS) + 2
    for plugin, (_, wanted) in {
        **FAULTS,
        "unmarked": ("", "symfonic_tools is not marked; put @hookimpl above it"),
    }.items():
        (line,) = [line for line in lines if f"plugin '{plugin}'" in line]
        assert line.startswith(f"  - plugin '{plugin}' (dist-{plugin} 1.0), invalid-hooks: {wanted}")
