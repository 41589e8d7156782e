"""symfonic.toml: every key, every way to get it wrong."""

from __future__ import annotations

import datetime as dt
import tomllib
from pathlib import Path

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from symfonic.host.config import (
    CONFIG_ENV,
    Deployment,
    EventsTable,
    ModelTable,
    PluginTable,
    PromptTable,
    ToolsTable,
    find_config,
    is_plugin_id,
    load_deployment,
    parse_deployment,
)
from symfonic.kernel.errors import ConfigError
from symfonic.kernel.limits import Limits

WHOLE = """
schema = 1
policy = "degraded"
[model]
use = "langchain_openai:ChatOpenAI"
[model.options]
model = "gpt-5-mini"
timeout = 3.5
[prompt]
system = "You are kind."
[limits]
rounds = 3
tool_calls = 4
turn_s = 5
model_timeout_s = 6.5
tool_timeout_s = 7.5
parallel_tools = 2
tools = 9
history_messages = 10
[tools]
show_errors = true
[events]
sinks = ["logging", "a.file"]
record_text = true
[[plugin]]
id = "a"
dist = "dist-a"
version = ">=1,<2"
required = true
grants = ["tools.narrow", "tool_call.refuse"]
[plugin.config]
k = 8
[[plugin]]
id = "b-2"
"""


def written(folder: Path, text: str | bytes) -> Path:
    """A file with this text."""
    path = folder / "symfonic.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def problems(table: dict[str, object]) -> tuple[str, ...]:
    """What is wrong with a table."""
    with pytest.raises(ConfigError) as caught:
        parse_deployment(table, source="x.toml")
    assert caught.value.source == "x.toml"
    return caught.value.problems


def test_every_key_is_read(tmp_path: Path) -> None:
    """A file that uses every key gives exactly the values it wrote."""
    got = load_deployment(written(tmp_path, WHOLE))
    assert got == Deployment(
        schema=1,
        policy="degraded",
        model=ModelTable(use="langchain_openai:ChatOpenAI", options={"model": "gpt-5-mini", "timeout": 3.5}),
        prompt=PromptTable(system="You are kind."),
        limits=Limits(
            rounds=3,
            tool_calls=4,
            turn_s=5.0,
            model_timeout_s=6.5,
            tool_timeout_s=7.5,
            parallel_tools=2,
            tools=9,
            history_messages=10,
        ),
        tools=ToolsTable(show_errors=True),
        events=EventsTable(sinks=("logging", "a.file"), record_text=True),
        plugin=(
            PluginTable(
                id="a",
                dist="dist-a",
                version=">=1,<2",
                required=True,
                grants=("tools.narrow", "tool_call.refuse"),
                config={"k": 8},
            ),
            PluginTable(id="b-2"),
        ),
    )
    assert isinstance(got.limits.turn_s, float)


def test_the_whole_file_leaves_no_field_at_its_default() -> None:
    """The test above would miss a key that is added later: each table's fields all stand in it."""
    parsed = tomllib.loads(WHOLE)
    assert set(parsed) == {field.name for field in attrs.fields(Deployment)}
    for name, kind in (
        ("model", ModelTable),
        ("prompt", PromptTable),
        ("limits", Limits),
        ("tools", ToolsTable),
        ("events", EventsTable),
    ):
        assert set(parsed[name]) == {field.name for field in attrs.fields(kind)}
    assert set(parsed["plugin"][0]) == {field.name for field in attrs.fields(PluginTable)}


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    """Every key may be absent; the policy is then strict and no plugin is selected."""
    got = load_deployment(written(tmp_path, ""))
    assert got == Deployment()
    assert (got.policy, got.plugin, got.model, got.limits) == ("strict", (), None, Limits())


@pytest.mark.parametrize(
    ("table", "path", "hint"),
    [
        ({"modle": {}}, "modle: unknown key", "did you mean 'model'?"),
        ({"model": {"use": "a:b", "option": {}}}, "model.option: unknown key", "did you mean 'options'?"),
        ({"prompt": {"sytem": "x"}}, "prompt.sytem: unknown key", "did you mean 'system'?"),
        ({"limits": {"round": 3}}, "limits.round: unknown key", "did you mean 'rounds'?"),
        ({"tools": {"show_error": True}}, "tools.show_error: unknown key", "did you mean 'show_errors'?"),
        ({"events": {"sink": []}}, "events.sink: unknown key", "did you mean 'sinks'?"),
        ({"plugin": [{"id": "a"}, {"id": "b", "grant": []}]}, "plugin[2].grant: unknown key", "did you mean 'grants'?"),
    ],
)
def test_an_unknown_key_is_refused_with_its_path_and_a_hint(table: dict[str, object], path: str, hint: str) -> None:
    """A key nobody reads is an error that says where it stands and what was meant."""
    assert problems(table) == (f"{path}; {hint}",)


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ({"limits": {"rounds": "8"}}, "limits.rounds: is a text, wanted a whole number"),
        ({"limits": {"rounds": 3.7}}, "limits.rounds: is a number, wanted a whole number"),
        ({"limits": {"rounds": True}}, "limits.rounds: is true, wanted a whole number"),
        ({"limits": {"turn_s": "9"}}, "limits.turn_s: is a text, wanted a number"),
        ({"limits": {"turn_s": False}}, "limits.turn_s: is false, wanted a number"),
        ({"tools": {"show_errors": 1}}, "tools.show_errors: is a whole number, wanted true or false"),
        ({"events": {"record_text": "yes"}}, "events.record_text: is a text, wanted true or false"),
        ({"prompt": {"system": 3}}, "prompt.system: is a whole number, wanted a text"),
        ({"prompt": {"system": dt.date(2026, 5, 1)}}, "prompt.system: is a date, wanted a text"),
        ({"prompt": []}, "prompt: is a list, wanted a table"),
        ({"model": "offline:rules"}, "model: is a text, wanted a table"),
        ({"model": {"use": "a:b", "options": [1]}}, "model.options: is a list, wanted a table"),
        ({"plugin": {"id": "a"}}, "plugin: is a table, wanted a list"),
        ({"plugin": ["a"]}, "plugin[1]: is a text, wanted a table"),
        ({"plugin": [{"id": "a", "required": "true"}]}, "plugin[1].required: is a text, wanted true or false"),
        ({"plugin": [{"id": "a", "grants": [3]}]}, "plugin[1].grants[1]: is a whole number, wanted a text"),
        ({"plugin": [{"id": "a", "config": 3}]}, "plugin[1].config: is a whole number, wanted a table"),
        ({"policy": "lax"}, "policy: is 'lax', wanted one of strict, degraded"),
        ({"policy": 1}, "policy: is a whole number, wanted one of strict, degraded"),
    ],
)
def test_scalars_are_strict(table: dict[str, object], wanted: str) -> None:
    """No "8", 3.7 or true for a whole number: what is got and what is wanted stand in the error."""
    assert problems(table) == (wanted,)


@pytest.mark.parametrize(
    ("table", "wanted"),
    [
        ({"model": {}}, "model.use: missing; give it a value"),
        ({"plugin": [{}]}, "plugin[1].id: missing; give it a value"),
    ],
)
def test_a_missing_key_is_named(table: dict[str, object], wanted: str) -> None:
    """A key without a default that is absent is an error with its path."""
    assert problems(table) == (wanted,)


def test_all_problems_stand_in_one_error() -> None:
    """A file with several faults tells all of them at once, a value never among them."""
    found = problems(
        {"modle": 1, "limits": {"rounds": "sk-secret"}, "plugin": [{"id": "a", "grantz": 1}, {"required": "sk-secret"}]}
    )
    assert len(found) == 5
    assert "sk-secret" not in "".join(found)


@pytest.mark.parametrize("schema", [0, 2, "1", 1.5, True, int("9" * 4000), -int("9" * 4000), [1]])
def test_another_schema_is_refused(schema: object) -> None:
    """A file of another schema is not half read: it is refused with both numbers."""
    (problem,) = problems({"schema": schema, "unknown": 1})
    assert problem.startswith("schema: is ")
    assert "wanted 1; write schema = 1" in problem


def test_a_schema_too_long_to_write_is_refused(tmp_path: Path) -> None:
    """A hexadecimal number of thousands of digits, which Python refuses to print, is a ConfigError still."""
    with pytest.raises(ConfigError, match="a huge number"):
        load_deployment(written(tmp_path, f"schema = 0x{'f' * 9000}"))


@pytest.mark.parametrize(
    ("block", "wanted"),
    [
        ({"id": "Bad_Id"}, "plugin 'Bad_Id': an id is small letters"),
        ({"id": ""}, "plugin '': an id is small letters"),
        ({"id": "a\n"}, "plugin 'a\\n': an id is small letters"),
        (
            {"id": "a", "grants": ["tools.narow"]},
            "plugin 'a'.grants: 'tools.narow' is no effect; did you mean 'tools.narrow'?",
        ),
        ({"id": "a", "version": "1.x"}, "plugin 'a'.version: '1.x' is no version specifier"),
    ],
)
def test_a_block_that_cannot_be_is_refused(block: dict[str, object], wanted: str) -> None:
    """Ids, grants and version specifiers are checked before anything is looked for."""
    (problem,) = problems({"plugin": [block]})
    assert problem.startswith(wanted)


def test_a_plugin_stands_once() -> None:
    """Two blocks of one id are an error: which one counts must not depend on order."""
    assert problems({"plugin": [{"id": "a"}, {"id": "b"}, {"id": "a"}]}) == (
        "plugin 'a': stands twice; keep one block",
    )


def test_one_text_is_a_list_of_one() -> None:
    """A list of texts written as one text is that text, not its letters."""
    got = parse_deployment({"plugin": [{"id": "a", "grants": "tools.force"}], "events": {"sinks": "logging"}})
    assert got.plugin[0].grants == ("tools.force",)
    assert got.events.sinks == ("logging",)


@pytest.mark.parametrize("good", ["a", "a1", "a-b", "tools"])
def test_ids_that_are_fine(good: str) -> None:
    """An id is small letters, digits and hyphens, a letter first."""
    assert is_plugin_id(good)


@pytest.mark.parametrize("bad", ["", "1a", "-a", "A", "a_b", "a.b", "ä", "a "])
def test_ids_that_are_not(bad: str) -> None:
    """Anything else is none: it would collide in qualified names, or look like another."""
    assert not is_plugin_id(bad)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[model\n", "is not valid TOML"),
        ("a = 1\na = 2\n", "is not valid TOML"),
        ("a = " + "[" * 100_000, "is not valid TOML"),
        ("a = " + "9" * 5000, "is not valid TOML"),
        ('a = "\\ud800"', "is not valid TOML"),
        ("a = 2026-02-31", "is not valid TOML"),
        (b"a = '\xff'", "is not UTF-8 at byte 5; save it as UTF-8"),
        ("a = 1".encode("utf-16"), "is not UTF-8 at byte 0; save it as UTF-8"),
    ],
)
def test_a_file_that_is_no_toml_is_refused(tmp_path: Path, text: str | bytes, wanted: str) -> None:
    """A broken file is a ConfigError that names the file and the place, whatever is broken."""
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_deployment(path)
    assert str(caught.value).startswith(f"{path}: {wanted}")


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    """Windows editors write one; the file is read as without it."""
    assert load_deployment(written(tmp_path, b'\xef\xbb\xbfpolicy = "degraded"\r\n')).policy == "degraded"


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """A path that is no readable file is a ConfigError with the system's reason."""
    with pytest.raises(ConfigError, match="cannot be read: "):
        load_deployment(tmp_path)
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load_deployment(tmp_path / "none.toml")


def test_the_file_is_found_by_argument_then_environment_then_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--config wins over SYMFONIC_CONFIG, which wins over ./symfonic.toml."""
    monkeypatch.chdir(tmp_path)
    for name in ("given.toml", "env.toml", "symfonic.toml"):
        (tmp_path / name).write_text("")
    monkeypatch.setenv(CONFIG_ENV, "env.toml")
    assert find_config("given.toml") == Path("given.toml")
    assert find_config() == Path("env.toml")
    monkeypatch.setenv(CONFIG_ENV, "")
    assert find_config() == Path("symfonic.toml")


def test_a_missing_file_and_a_folder_are_told_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both errors name the path, what it is, and how to name another one."""
    monkeypatch.delenv(CONFIG_ENV, raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"symfonic.toml does not exist; .*--config or SYMFONIC_CONFIG"):
        find_config()
    with pytest.raises(ConfigError, match="is a folder"):
        find_config(tmp_path)
    with pytest.raises(ConfigError, match="does not exist"):
        find_config("a\0b")


def test_secrets_do_not_stand_in_reprs() -> None:
    """Options and plugin configuration may hold keys: no repr shows them."""
    got = parse_deployment(
        {"model": {"use": "a:b", "options": {"api_key": "sk-1"}}, "plugin": [{"id": "a", "config": {"token": "sk-2"}}]}
    )
    assert "sk-" not in repr(got)


SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.dates(),
)
KEYS = st.sampled_from(
    ["schema", "policy", "model", "use", "options", "prompt", "system", "limits", "rounds", "turn_s", "tools", "show_errors",
     "events", "sinks", "plugin", "id", "dist", "version", "required", "grants", "config", "x", "", "a.b", "é"]
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=5))
@example({"limits": {"turn_s": 10**400}})
@example({"plugin": [{"id": "a", "version": "\x00"}]})
@example({"plugin": [{"id": "a", "version": ">=1;<2"}]})
def test_any_table_is_a_deployment_or_a_config_error(table: dict[str, object]) -> None:
    """Whatever a table holds, parsing gives a Deployment or a ConfigError with at least one problem, and nothing else."""
    try:
        assert isinstance(parse_deployment(table), Deployment)
    except ConfigError as error:
        assert error.problems
        assert all(error.problems)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_mutated_file_is_a_deployment_or_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A good file with bytes cut, doubled or overwritten loads, or is a ConfigError that names the file."""
    raw = bytearray(WHOLE.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(raw) - 1))
        length = data.draw(st.integers(0, 12))
        raw[place : place + length] = data.draw(
            st.binary(max_size=6) | st.sampled_from([b'"', b"[", b"]]", b"=", b"\n", b"\xff"])
        )
    path = tmp_path_factory.getbasetemp() / "mutated.toml"
    path.write_bytes(raw)
    try:
        assert isinstance(load_deployment(path), Deployment)
    except ConfigError as error:
        assert str(path) in str(error)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=4))
def test_options_and_plugin_config_come_through_unchanged(free: dict[str, object]) -> None:
    """[model.options] and [plugin.config] are nobody's but the class they are for: kept as TOML has them."""
    got = parse_deployment({"model": {"use": "a:b", "options": free}, "plugin": [{"id": "a", "config": free}]})
    assert got.model is not None
    assert repr(got.model.options) == repr(got.plugin[0].config) == repr(free)
