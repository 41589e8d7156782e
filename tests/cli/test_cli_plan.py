"""``symfonic-kernel plan``."""

from __future__ import annotations

import attrs
import pytest
from tests.cli.conftest import Cli
from tests.cli.support import deployment, stage
from tests.host.support import FakeSite

from symfonic.kernel.limits import Limits

ORDERED = """
async def nothing(context):
    return None

@hookimpl
def symfonic_stages(context):
    return [StageHandler("z", lambda ctx: nothing, phase="settle", before="a", after="gone.x"),
            StageHandler("a", lambda ctx: nothing, phase="settle", effects=(), timeout_s=2.5),
            StageHandler("guard", lambda ctx: nothing, phase="pre-tool", effects=("tool_call.refuse",))]

class Sink:
    def emit(self, event):
        pass

@hookimpl
def symfonic_event_sinks(context):
    return [EventSink("file", lambda ctx: Sink())]

async def route(turn):
    return None

@hookimpl
def symfonic_routers(context):
    return [Router("numbers", lambda ctx: route)]
"""
TAKES = """
def build(ctx):
    ctx.routers.take("numbers")
    async def resolve(context):
        return None
    return resolve

@hookimpl
def symfonic_stages(context):
    return [StageHandler("pick", build, phase="resolve", resolves="tools")]
"""


def whole(site: FakeSite) -> None:
    """A deployment with something of everything."""
    site.plugin("all", ORDERED, version="2.0")
    site.plugin("take", TAKES)
    blocks = '[[plugin]]\nid = "all"\ngrants = ["tool_call.refuse"]\n[[plugin]]\nid = "take"\n'
    deployment(site, "'x'", more="[limits]\nrounds = 7\n", blocks=blocks)


def test_json_has_everything(site: FakeSite, cli: Cli) -> None:
    """Stages in order with effects and contributor, tools, routers, sinks, grants, limits, fingerprint, dropped orderings."""
    whole(site)
    done = cli("plan", "--json")
    assert (done.code, done.err) == (0, "")
    plan = done.json
    one = "plugin all (dist-all 2.0)"
    assert [(s["phase"], s["stage"], s["contributor"]) for s in plan["stages"]] == [
        ("resolve", "take.pick", "plugin take (dist-take 1.0)"),
        ("pre-tool", "all.guard", one),
        ("settle", "all.z", one),
        ("settle", "all.a", one),
    ]
    assert plan["stages"][0]["resolves"] == "tools"
    assert plan["stages"][1]["effects"] == ["tool_call.refuse"]
    assert (plan["stages"][2]["before"], plan["stages"][2]["after"]) == (["all.a"], [])
    assert plan["stages"][3]["timeout_s"] == 2.5
    assert [(t["name"], t["contributor"]) for t in plan["tools"]] == [
        (name, "plugin kit (dist-kit 1.0)") for name in ("add", "fail", "outside")
    ]
    assert len({t["runs"] for t in plan["tools"]}) == 2
    assert plan["routers"] == {"numbers": one}
    assert plan["sinks"]["all.file"] == one
    assert set(plan["sinks"]) == {"logging", "all.file"}
    assert plan["grants"] == ["tool_call.refuse"]
    assert plan["limits"] == {**attrs.asdict(Limits()), "rounds": 7}
    assert plan["model"] == "plugin said (dist-said 1.0)"
    assert plan["forcing"] is None
    assert plan["dropped_orderings"] == ["all.z after gone.x: its plugin is not selected"]
    assert plan["fingerprint"]


def test_d4_a_person_sees_the_order(site: FakeSite, cli: Cli) -> None:
    """The same as a table, nothing cut, without colours where no terminal is."""
    whole(site)
    done = cli("plan")
    assert (done.code, done.err) == (0, "")
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines.index("settle all.z - before all.a plugin all (dist-all 2.0)") + 1 == lines.index(
        "settle all.a - plugin all (dist-all 2.0)"
    )
    assert "pre-tool all.guard tool_call.refuse plugin all (dist-all 2.0)" in lines
    assert "dropped: all.z after gone.x: its plugin is not selected" in lines
    assert "routers: numbers from plugin all (dist-all 2.0)" in lines
    assert "model from plugin said (dist-said 1.0); forcing answered by nobody" in lines
    assert any(line.startswith("limits: rounds 7, ") for line in lines)
    assert any(line.startswith("add ") and line.endswith("plugin kit (dist-kit 1.0)") for line in lines)
    assert "\x1b" not in done.out
    assert cli("plan", "--json").json["fingerprint"] in done.out


def test_the_fingerprint_is_stable_and_follows_the_file(site: FakeSite, cli: Cli) -> None:
    """Twice the same, in another process too; another limit is another plan."""
    whole(site)
    first = cli("plan", "--json").json["fingerprint"]
    assert cli("plan", "--json").json["fingerprint"] == first
    other = site.cli("plan", "--json", env={"PYTHONHASHSEED": "7"})
    assert first in other.stdout.decode()
    file = site.root / "symfonic.toml"
    file.write_text(file.read_text().replace("rounds = 7", "rounds = 8"))
    assert cli("plan", "--json").json["fingerprint"] != first


def test_who_answered_the_forcing_question_is_shown(site: FakeSite, cli: Cli) -> None:
    """A provider that claims the model stands in the plan."""
    provider = """
    class Forcing:
        def support(self, model):
            return ForcingSupport("refused")
        def bind(self, request):
            return Bound(request.model)
    @hookimpl
    def symfonic_forcing_providers(context):
        return [ForcingProvider("f", lambda ctx: Forcing())]
    """
    site.plugin("force", provider)
    deployment(site, "'x'", blocks='[[plugin]]\nid = "force"\n')
    assert cli("plan", "--json").json["forcing"] == "plugin force (dist-force 1.0)"
    assert "forcing answered by plugin force (dist-force 1.0)" in cli("plan").out


def test_no_secret_stands_in_a_plan(site: FakeSite, cli: Cli) -> None:
    """Neither options nor plugin configuration nor the system text are printed."""
    keyed = """
    @attrs.frozen
    class Config:
        token: str = ""
    @hookimpl
    def symfonic_tools(context):
        return [Tools("t", lambda ctx: [], config=Config)]
    """
    site.plugin("keyed", keyed)
    deployment(
        site,
        "'x'",
        more='[prompt]\nsystem = "sk-one"\n[model.options]\napi_key = "sk-two"\n',
        blocks='[[plugin]]\nid = "keyed"\n[plugin.config]\ntoken = "sk-three"\n',
    )
    file = site.root / "symfonic.toml"
    file.write_text(
        file.read_text().replace(
            '[model.options]\napi_key = "sk-two"\n\n[model]\n', '[model]\noptions = {api_key = "sk-two"}\n'
        )
    )
    for options in ((), ("--json",)):
        done = cli("plan", *options)
        assert done.code == 0
        assert "sk-" not in done.out


@pytest.mark.parametrize(
    ("source", "code", "wanted"),
    [
        ("raise RuntimeError('boom')", 3, "import-failed"),
        (stage("nowhere", "pass"), 3, "the unknown phase 'nowhere'"),
        (
            stage("settle", "pass")
            .replace('"log"', '"log", after="nope"')
            .replace('"log", after="nope", build', '"log", build, after="nope"'),
            3,
            "is no stage at settle",
        ),
    ],
)
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_plan_that_cannot_be_is_told(
    site: FakeSite, cli: Cli, source: str, code: int, wanted: str, options: tuple[str, ...]
) -> None:
    """With the owner and the exit code, in words and as JSON."""
    site.plugin("bad", source)
    deployment(site, "'x'", blocks='[[plugin]]\nid = "bad"\n')
    done = cli("plan", *options)
    assert done.code == code
    assert wanted in done.err
    assert "dist-bad 1.0" in done.err
    assert (done.out == "") is (options == ())
    if options:
        assert wanted in done.json["error"]["message"]
        assert done.json["error"]["exit_code"] == code


def test_a_plan_without_a_file(site: FakeSite, cli: Cli) -> None:
    """Exit code 2, with the way out."""
    done = cli("plan")
    assert (done.code, done.out) == (2, "")
    assert "symfonic.toml does not exist" in done.err
