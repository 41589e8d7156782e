"""symfonic.toml as text: whatever an editor, a merge or a disk makes of a file, it loads or is refused with reasons."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from symfonic.host.config import Deployment, load_deployment
from symfonic.kernel.errors import ConfigError

SHOP = (Path(__file__).parents[2] / "examples" / "shop" / "symfonic.toml").read_text(encoding="utf-8")
LINES = SHOP.splitlines(keepends=True)
KEYS = sorted({found[1] for line in LINES if (found := re.match(r"(\w+) = ", line))})
VALUES = st.sampled_from(
    [
        *(
            '""',
            "''",
            '"""',
            "'''",
            "[]",
            "{}",
            "[[]]",
            "[{}]",
            '[""]',
            "true",
            "nan",
            "-inf",
            "0",
            "-1",
            "0.5",
            "1e400",
        ),
        *("1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "0x1F", "9" * 30, "9" * 5000, '"\\ud800"', '"\\u0000"'),
        *('"\\U0010FFFF"', '"🪑"', "{a = {b = {c = 1}}}", '{"" = ""}', "[1, 'a', 2.0]", '">=1,<2"', '"tools.narrow"'),
        "[" * 2000,
        "{a=" * 500,
    ]
)
PIECES = st.sampled_from(
    ["[", "]", "[[plugin]]\n", "[plugin.config]\n", "[model]\n", "=", '"', "'", "#", "\n", "\r", "\x00"]
)
PIECES |= st.sampled_from(
    ["\ufeff", "\u2028", "<<<<<<< HEAD\n", "=======\n", ">>>>>>> other\n", "plugin.x = 1\n", "\\", "."]
)


def settled(path: Path) -> Deployment | None:
    """The deployment, or None where it was refused with reasons that name the file; anything else is raised."""
    try:
        deployment = load_deployment(path)
    except ConfigError as error:
        assert error.problems
        assert all(error.problems)
        assert str(path) in str(error)
        str(error).encode()
        return None
    assert isinstance(deployment, Deployment)
    return deployment


@st.composite
def edited(draw: st.DrawFn) -> str:
    """The shop's file after one to five edits of lines: dropped, doubled, moved, renamed, revalued, indented, cut, joined."""
    lines = list(LINES)
    for _ in range(draw(st.integers(1, 5))):
        place = draw(st.integers(0, len(lines) - 1))
        other = draw(st.integers(0, len(lines) - 1))
        how = draw(st.sampled_from(["drop", "double", "swap", "key", "value", "insert", "cut", "join", "case", "text"]))
        line = lines[place]
        if how == "drop":
            lines[place] = ""
        elif how == "double":
            lines.insert(other, line)
        elif how == "swap":
            lines[place], lines[other] = lines[other], line
        elif how == "key":
            name = draw(st.sampled_from([*KEYS, "", "a.b", '"quoted key"', "ключ"]) | st.text(max_size=5))
            lines[place] = re.sub(r"^\w+(?= =)", lambda _: name, line)
        elif how == "value":
            value = draw(VALUES)
            lines[place] = re.sub(r"= .*", lambda _: f"= {value}", line)
        elif how == "insert":
            lines.insert(place, draw(PIECES))
        elif how == "cut":
            lines[place] = line[: draw(st.integers(0, len(line)))]
        elif how == "join":
            lines[place] = line.rstrip("\n")
        elif how == "case":
            lines[place] = line.swapcase()
        else:
            lines[place] = draw(st.text(max_size=12)) + line
    return "".join(lines)


TEXTS = settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))


@TEXTS
@given(text=edited())
@example(text=SHOP)
@example(text="")
@example(text="\ufeff" + SHOP)
@example(text=SHOP.replace("\n", "\r\n"))
@example(text=SHOP.replace("\n", "\r"))
@example(text=SHOP + "a = " + "[" * 100_000)
@example(text=SHOP + "x = " + "9" * 10_000)
@example(text=SHOP + "\n[model]\n")
@example(text="schema = 1\n[limits]\nturn_s = " + "9" * 4000)
def test_any_edit_of_the_shops_file_loads_or_is_refused_with_reasons(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    """Whatever lines of a good file become, loading it gives a Deployment or a ConfigError that names the file."""
    path = tmp_path_factory.getbasetemp() / "edited.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    settled(path)


@TEXTS
@given(data=st.data())
def test_any_bytes_of_the_shops_file_load_or_are_refused_with_reasons(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Cut short, with a hole, or with bytes of another encoding in it, a file is never more than refused."""
    raw = bytearray(SHOP.encode(data.draw(st.sampled_from(["utf-8", "utf-8", "utf-16", "latin-1", "utf-8-sig"]))))
    for _ in range(data.draw(st.integers(0, 3))):
        begin = data.draw(st.integers(0, len(raw)))
        end = begin + data.draw(st.sampled_from([0, 1, 3, 40, len(raw)]))
        raw[begin:end] = data.draw(st.binary(max_size=8))
    path = tmp_path_factory.getbasetemp() / "bytes.toml"
    path.write_bytes(bytes(raw))
    settled(path)


@TEXTS
@given(
    table=st.sampled_from(["", "[model]", "[prompt]", "[limits]", "[tools]", "[events]", "[[plugin]]", "[plugin]"]),
    key=st.sampled_from(
        [*KEYS, "options", "history_messages", "sinks", "record_text", "show_errors", "config", "policy"]
    ),
    value=VALUES,
)
def test_any_value_of_any_key_is_taken_or_refused_with_reasons(
    tmp_path_factory: pytest.TempPathFactory, table: str, key: str, value: str
) -> None:
    """Each key of each table takes its own kind of value and refuses every other by its name."""
    path = tmp_path_factory.getbasetemp() / "value.toml"
    path.write_text(f"{table}\n{key} = {value}\n", encoding="utf-8")
    settled(path)


def test_the_shops_own_file_is_good() -> None:
    """The file the mutations begin with loads: that the others are refused is the mutations' doing."""
    path = Path(__file__).parents[2] / "examples" / "shop" / "symfonic.toml"
    deployment = settled(path)
    assert deployment is not None
    assert [plugin.id for plugin in deployment.plugin] == ["offline", "shop", "tools"]
