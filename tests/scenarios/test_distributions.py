"""D10, D11, D12: one plugin installed twice, claimed twice, or made for another kernel."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.host.support import FakeSite, make_site, model_source

from symfonic.host import Host
from symfonic.host.discovery import kernel_version
from symfonic.kernel.errors import SymfonicError

IMPORTED = """
import pathlib
pathlib.Path(__file__).with_name("imported.txt").write_text("yes")
"""
SAID = '[model]\nuse = "said:scripted"\n[[plugin]]\nid = "said"\n'


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSite]:
    """A fake site on ``sys.path``."""
    yield from make_site(tmp_path / "site", monkeypatch)


@pytest.fixture
def second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: FakeSite) -> Iterator[FakeSite]:
    """Another folder, before the first on ``sys.path``: an editable checkout's, a user site."""
    yield from make_site(tmp_path / "second", monkeypatch)


def refused(site: FakeSite, text: str = SAID) -> SymfonicError:
    """Why a deployment does not start."""
    with pytest.raises(SymfonicError) as caught, Host.from_file(site.deployment(text)):
        pass
    return caught.value


def answer(site: FakeSite, text: str = SAID) -> str:
    """What the deployment's model says."""
    with Host.from_file(site.deployment(text)) as host:
        return host.run_sync("hi").text


def copied(site: FakeSite, other: FakeSite) -> None:
    """Leave the same metadata in another folder, as an editable install does."""
    for folder in site.root.glob("*.dist-info"):
        shutil.copytree(folder, other.root / folder.name)


# -- D10: one distribution more than once ----------------------------------------------------------------------------------


def test_d10_duplicates_of_one_distribution_are_one_plugin(site: FakeSite, second: FakeSite) -> None:
    """The same version's metadata in two folders of the path: it starts, nothing is reported, it is listed once."""
    site.plugin("said", model_source("'fine'"))
    copied(site, second)
    assert answer(site) == "fine"
    done = site.cli("plugins", "list", env={"PYTHONPATH": f"{second.root}:{site.root}"})
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0
    assert len([line for line in lines if line.startswith("said ")]) == 1


def test_d10_the_name_may_be_spelt_otherwise(site: FakeSite, second: FakeSite) -> None:
    """Build tools write ``Dist_Said`` and ``dist-said`` for one distribution: it is one still."""
    site.plugin("said", model_source("'fine'"), dist="dist-said")
    second.dist("Dist.Said", entry_points="[symfonic.plugins]\nsaid = fake_said\n")
    assert answer(site) == "fine"


@pytest.mark.parametrize("where", ["beside", "elsewhere"])
def test_d10_a_stale_dist_info_is_refused_with_both_paths(site: FakeSite, second: FakeSite, where: str) -> None:
    """Of an older version, in the same folder or another one: which is imported is luck, so both are named."""
    site.plugin("said", IMPORTED + model_source(), version="2.0")
    stale = (site if where == "beside" else second).dist(
        "dist-said", "1.9", entry_points="[symfonic.plugins]\nsaid = fake_said\n"
    )
    error = refused(site)
    assert "its metadata lies in several versions" in str(error)
    assert str(site.root / "dist_said-2.0.dist-info") in str(error)
    assert str(stale) in str(error)
    assert not (site.root / "imported.txt").exists()


def test_d10_a_stale_dist_info_of_another_distribution_is_nobody_s_matter(site: FakeSite) -> None:
    """What is not selected may be as stale as it likes."""
    site.plugin("said", model_source("'fine'"))
    for version in ("1.0", "2.0"):
        site.dist("other", version, entry_points="[symfonic.plugins]\nother = fake_other\n")
    assert answer(site) == "fine"


def test_d10_a_stale_version_that_lacked_the_plugin_is_no_double(site: FakeSite) -> None:
    """An older version without the entry point supplies nothing: there is one plugin, and it starts."""
    site.plugin("said", model_source("'fine'"), version="2.0")
    site.dist("dist-said", "1.9", entry_points="[console_scripts]\nx = y:z\n")
    assert answer(site) == "fine"


# -- D11: two distributions claim one id -----------------------------------------------------------------------------------


def claimed(site: FakeSite) -> None:
    """Two distributions with a plugin ``said`` each."""
    site.plugin("said", IMPORTED + model_source("'the first'"), dist="first")
    site.module("fake_other", model_source("'the second'"))
    site.dist("second", "3.1", entry_points="[symfonic.plugins]\nsaid = fake_other\n")


def test_d11_two_distributions_of_one_id_are_ambiguous_and_both_named(site: FakeSite) -> None:
    """Neither wins by luck: refused with both distributions, their versions and places, and nothing is imported."""
    claimed(site)
    error = refused(site)
    for part in ("2 distributions supply it", "first 1.0", "second 3.1", str(site.root), 'dist = "..."'):
        assert part in str(error)
    assert not (site.root / "imported.txt").exists()


@pytest.mark.parametrize(("dist", "says"), [("first", "the first"), ("second", "the second"), ("Second", "the second")])
def test_d11_dist_decides(site: FakeSite, dist: str, says: str) -> None:
    """``dist`` in the selection takes one, however its name is spelt; the other is not imported."""
    claimed(site)
    assert answer(site, f'{SAID}dist = "{dist}"\n') == says
    assert (site.root / "imported.txt").exists() == (dist == "first")


def test_d11_a_dist_that_does_not_supply_it_is_told_who_does(site: FakeSite) -> None:
    """A misspelt ``dist`` is missing, and the error names the distributions that would do."""
    claimed(site)
    text = str(refused(site, f'{SAID}dist = "secnd"\n'))
    assert "secnd does not supply it; installed from: first 1.0, second 3.1" in text


def test_d11_version_does_not_decide(site: FakeSite) -> None:
    """A version that only one of them fits is no choice of supplier: still ambiguous."""
    claimed(site)
    assert "2 distributions supply it" in str(refused(site, f'{SAID}version = ">=3"\n'))


def test_d11_one_distribution_may_not_claim_an_id_twice_unheard(site: FakeSite) -> None:
    """Two entry points of one name in one distribution name two modules: refused, not resolved by luck."""
    site.module("fake_other", model_source("'other'"))
    site.module("fake_said", model_source("'said'"))
    site.dist("twice", entry_points="[symfonic.plugins]\nsaid = fake_said\nsaid = fake_other\n")
    assert "ambiguous" in str(refused(site))


def test_d11_what_is_ambiguous_is_listed_with_both(site: FakeSite) -> None:
    """``plugins list`` works without a choice and shows both suppliers."""
    claimed(site)
    done = site.cli("plugins", "list")
    assert done.returncode == 0
    assert all(name in done.stdout.decode() for name in ("first", "second"))
    assert not (site.root / "imported.txt").exists()


# -- D12: made for another kernel ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("needs", [">=99", "<0.0.1", "==98.7", "~=99.1", ">=99,<100"])
def test_d12_a_plugin_for_another_kernel_is_refused_before_import(site: FakeSite, needs: str) -> None:
    """Too new or too old: refused from metadata, with what it requires and what is running, and not imported."""
    site.plugin("said", IMPORTED + model_source(), requires=[f"symfonic-kernel{needs}"])
    text = str(refused(site))
    assert "it requires symfonic-kernel" in text
    assert all(part in text for part in needs.split(","))
    assert f"{kernel_version()} is running" in text
    assert "dist-said 1.0" in text
    assert not (site.root / "imported.txt").exists()


@pytest.mark.parametrize("needs", ["", ">=0", "!=99", "<99; python_version >= '3'", ">=99; extra == 'next'"])
def test_d12_a_requirement_that_fits_or_does_not_apply_starts(site: FakeSite, needs: str) -> None:
    """No bound, one that holds, or one of an extra nobody asked for: it starts."""
    site.plugin("said", model_source("'fine'"), requires=[f"symfonic-kernel{needs}"])
    assert answer(site) == "fine"


def test_d12_every_requirement_of_the_kernel_counts(site: FakeSite) -> None:
    """Metadata may name the kernel on several lines: one that does not hold refuses, wherever it stands."""
    requires = ["symfonic-kernel>=0", "symfonic-kernel>=99"]
    site.plugin("said", IMPORTED + model_source(), requires=requires)
    assert ">=99" in str(refused(site))
    assert not (site.root / "imported.txt").exists()


def test_d12_a_pre_release_of_the_kernel_is_a_kernel(site: FakeSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who runs 1.1.0rc1 or a development version runs something later than 1.0: the plugin starts."""
    site.plugin("said", model_source("'fine'"), requires=["symfonic-kernel>=1,<2"])
    for version in ("1.1.0rc1", "1.0.1.dev3+g12ab"):
        monkeypatch.setattr("symfonic.host.registry.kernel_version", lambda version=version: version)
        assert answer(site) == "fine"


def test_d12_degraded_leaves_it_out_loudly_and_runs_the_rest(site: FakeSite, caplog: pytest.LogCaptureFixture) -> None:
    """By policy degraded a plugin of another kernel is left out with a warning that has both versions."""
    site.plugin("said", model_source("'fine'"))
    site.plugin("newer", IMPORTED, requires=["symfonic-kernel>=99"])
    assert answer(site, f'policy = "degraded"\n{SAID}[[plugin]]\nid = "newer"\n') == "fine"
    assert f"requires symfonic-kernel >=99, {kernel_version()} is running" in caplog.text
    assert not (site.root / "imported.txt").exists()


def test_d10_to_d12_stand_in_one_report(site: FakeSite) -> None:
    """A stale, an ambiguous and an incompatible plugin: one report on the command line, a line and a reason each."""
    claimed(site)
    site.plugin("stale", IMPORTED)
    site.dist("dist-stale", "0.9", entry_points="[symfonic.plugins]\nstale = fake_stale\n")
    site.plugin("newer", IMPORTED, requires=["symfonic-kernel>=99"])
    site.deployment(SAID + "".join(f'[[plugin]]\nid = "{one}"\n' for one in ("stale", "newer")))
    done = site.cli("run", "hi")
    assert (done.returncode, done.stdout) == (3, b"")
    lines = done.stderr.decode().splitlines()
    reasons = {"said": "ambiguous", "stale": "ambiguous", "newer": "incompatible"}
    for plugin, reason in reasons.items():
        (line,) = [line for line in lines if f"plugin '{plugin}'" in line]
        assert reason in line
    assert not (site.root / "imported.txt").exists()
