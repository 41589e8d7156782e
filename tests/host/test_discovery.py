"""Finding plugins from metadata alone."""

from __future__ import annotations

from pathlib import Path

import importlib_metadata
import pytest
from tests.host.support import FakeSite, model_source

from symfonic.host.discovery import GROUP, InstalledPlugin, discover, kernel_version, normal_name

BREAKS = "raise RuntimeError('imported')"


def found(site: FakeSite) -> list[tuple[str, str, str, str]]:
    """What is found, in short."""
    return [(one.id, one.module, one.dist, one.version) for one in site.installed()]


def test_plugins_are_found_sorted_with_their_distribution(site: FakeSite) -> None:
    """Every entry point of the group is one plugin, sorted by id, its distribution's name normalised."""
    site.plugin("b", BREAKS, dist="Dist_B.Two", version="2.0.1")
    site.plugin("a", BREAKS)
    assert found(site) == [("a", "fake_a", "dist-a", "1.0"), ("b", "fake_b", "dist-b-two", "2.0.1")]
    assert site.installed()[1].label == "dist-b-two 2.0.1"
    assert str(site.root) in site.installed()[0].location


def test_d7_discovery_imports_nothing(site: FakeSite) -> None:
    """Finding a plugin does not import it."""
    site.plugin("a", BREAKS)
    assert len(site.installed()) == 1
    assert site.imported() == set()


def test_other_groups_and_distributions_without_entry_points_are_no_plugins(site: FakeSite) -> None:
    """Only the group symfonic.plugins counts, however its name is used elsewhere in the file."""
    site.dist("none")
    site.dist("scripts", entry_points=f"[console_scripts]\n{GROUP} = x:y\n")
    assert found(site) == []


def test_one_distribution_may_bring_several_plugins(site: FakeSite) -> None:
    """Each entry point stands for itself."""
    site.dist("two", entry_points=f"[{GROUP}]\nx = mod_x\ny = mod_y\n")
    assert found(site) == [("x", "mod_x", "two", "1.0"), ("y", "mod_y", "two", "1.0")]


def twice(site: FakeSite, other: Path, version: str, module: str = "fake_a") -> InstalledPlugin:
    """One plugin in two folders of the path."""
    site.plugin("a", BREAKS)
    FakeSite(other).dist("dist-a", version, entry_points=f"[{GROUP}]\na = {module}\n")
    (one,) = discover(importlib_metadata.distributions(path=[str(site.root), str(other)]))
    return one


def test_d10_metadata_that_stands_twice_is_one(site: FakeSite, tmp_path: Path) -> None:
    """An editable install leaves the same version's metadata in two places: that is one plugin, nothing is reported."""
    assert twice(site, tmp_path / "other", "1.0").others == ()


@pytest.mark.parametrize(("version", "module"), [("0.9", "fake_a"), ("1.0", "elsewhere")])
def test_d10_a_stale_version_beside_is_reported_with_its_path(
    site: FakeSite, tmp_path: Path, version: str, module: str
) -> None:
    """Another version, or the same one naming another module, is kept as a path: which one is imported is luck."""
    one = twice(site, tmp_path / "other", version, module)
    assert one.version == "1.0"
    (other,) = one.others
    assert str(tmp_path / "other") in other


def test_d11_two_distributions_of_one_id_are_two(site: FakeSite) -> None:
    """Discovery does not decide between suppliers."""
    site.plugin("a", BREAKS, dist="one")
    site.dist("two", entry_points=f"[{GROUP}]\na = other\n")
    assert [one.dist for one in site.installed()] == ["one", "two"]


@pytest.mark.parametrize(
    "broken",
    [
        f"[{GROUP}]\nx\n",
        f"[{GROUP}]\n= y\n[unclosed\nz",
        f"{GROUP}",
        f"[{GROUP}]\n",
        f"[{GROUP}]\nx = \u00e9\udcff".encode("utf-8", "surrogateescape"),
        None,
    ],
)
def test_d6_broken_metadata_hides_no_other_plugin(site: FakeSite, broken: str | bytes | None) -> None:
    """An entry_points.txt that is malformed, not UTF-8, empty or gone is no reason to fail, nor to miss the others."""
    folder = site.dist("broken")
    if isinstance(broken, str):
        (folder / "entry_points.txt").write_text(broken)
    elif broken is not None:
        (folder / "entry_points.txt").write_bytes(broken)
    site.plugin("good", BREAKS)
    assert [row for row in found(site) if row[0] == "good"] == [("good", "fake_good", "dist-good", "1.0")]


def test_d6_half_removed_metadata_is_still_found(site: FakeSite) -> None:
    """Without METADATA a plugin is found still, from its folder's name, so that it can be told as broken."""
    site.plugin("a", BREAKS, metadata=False)
    (one,) = site.installed()
    assert (one.dist, one.version, one.kernel_requirement()) == ("dist-a", "1.0", None)


def test_d6_an_egg_info_without_metadata_is_still_found(site: FakeSite) -> None:
    """Where not even a folder's name tells it, the distribution is unknown, and nothing crashes."""
    folder = site.root / "x.egg-info"
    folder.mkdir()
    (folder / "entry_points.txt").write_text(f"[{GROUP}]\na = mod\n")
    assert found(site) == [("a", "mod", "unknown", "0")]


def test_an_egg_info_is_named_by_its_metadata(site: FakeSite) -> None:
    """Old-style installs have no version in the folder's name: METADATA tells it."""
    folder = site.root / "x.egg-info"
    folder.mkdir()
    (folder / "entry_points.txt").write_text(f"[{GROUP}]\na = mod\n")
    (folder / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: Some_Dist\nVersion: 3.1\n")
    assert found(site) == [("a", "mod", "some-dist", "3.1")]


class _Virtual(importlib_metadata.Distribution):
    """A distribution that lies in no folder."""

    def read_text(self, filename: str) -> str | None:
        texts = {
            "entry_points.txt": f"[{GROUP}]\nv = mod\n",
            "METADATA": "Metadata-Version: 2.1\nName: Zip\nVersion: 7\n",
        }
        return texts.get(filename)

    def locate_file(self, path: object) -> Path:  # type: ignore[override]  # nothing lies anywhere
        return Path(str(path))


def test_other_finders_are_asked_for_their_metadata() -> None:
    """A finder of another kind, a zip's or an editable hook's, is heard too."""
    (one,) = discover([_Virtual()])
    assert (one.id, one.dist, one.version, one.location) == ("v", "zip", "7", "")


@pytest.mark.parametrize(
    ("requires", "wanted"),
    [
        (["symfonic-kernel>=0.1,<1"], "<1,>=0.1"),
        (["Symfonic_Kernel >= 2"], ">=2"),
        (["symfonic-kernel"], None),
        (["attrs>=24"], None),
        (["this is no requirement!", "symfonic-kernel<9"], "<9"),
        (["symfonic-kernel>=99; extra == 'new'", "symfonic-kernel>=1"], ">=1"),
        (["symfonic-kernel>=99; python_version < '3'"], None),
        ([], None),
    ],
)
def test_what_a_plugin_requires_of_the_kernel(site: FakeSite, requires: list[str], wanted: str | None) -> None:
    """The requirement is read from metadata, extras and other environments' lines aside."""
    site.plugin("a", BREAKS, requires=requires)
    assert site.installed()[0].kernel_requirement() == wanted


def test_a_found_plugin_can_be_imported(site: FakeSite) -> None:
    """The entry point that was found loads the module it names."""
    site.plugin("a", model_source())
    assert site.installed()[0].entry_point.load().__name__ == "fake_a"


def test_names_are_normalised() -> None:
    """PEP 503: runs of hyphens, dots and underscores are one hyphen."""
    assert normal_name("A__b.-C") == "a-b-c"


def test_the_kernels_version_is_its_distributions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run from a tree without metadata the version is "0", not an error."""
    assert kernel_version() == importlib_metadata.version("symfonic-kernel")
    monkeypatch.setattr("symfonic.host.discovery.KERNEL_DIST", "no-such-distribution")
    assert kernel_version() == "0"


def test_what_is_installed_is_found_by_default(site: FakeSite) -> None:
    """Without an argument every distribution on sys.path is looked at."""
    site.plugin("zz-fake", BREAKS)
    assert "zz-fake" in {one.id for one in discover()}
