"""What a forcing provider is handed to bind."""

from __future__ import annotations

from types import SimpleNamespace

from langchain_core.utils.function_calling import convert_to_openai_tool

from symfonic.host.forcing import _binder
from symfonic.plugin import BindRequest, Bound, ToolTurn, tool_name


def mine(x: int, turn: ToolTurn) -> str:
    """Run."""
    return f"{x} {turn.tenant}"


def plain(x: int) -> str:
    """Run."""
    return str(x)


def test_a_provider_is_handed_a_palette_that_hides_what_is_injected() -> None:
    """Palette and selection hold the same objects; none shows a ToolTurn, and one with nothing to hide is as given."""
    asked: list[BindRequest] = []

    def bind(request: BindRequest) -> Bound:
        asked.append(request)
        return Bound("m", ())

    bind_with = _binder(SimpleNamespace(tools=[mine, plain]), SimpleNamespace(bind=bind))  # type: ignore[arg-type]
    bind_with("model", [plain], None)
    (request,) = asked
    assert [tool_name(tool) for tool in request.palette] == ["mine", "plain"]
    assert request.selected == (plain,)
    assert request.palette[1] is plain
    shown = convert_to_openai_tool(request.palette[0])  # type: ignore[arg-type]
    assert list(shown["function"]["parameters"]["properties"]) == ["x"]
