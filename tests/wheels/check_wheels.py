"""Builds every distribution, installs it as users do, and proves what is installed.

``tox -e wheels-py311`` runs it on one Python. All it makes stands in a temporary folder outside the checkout; what it
needs beside Python is the package index. Arguments go to pytest, for a part of the tests.
"""

from __future__ import annotations

import ast
import configparser
import email
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
SMOKE = Path(__file__).with_name("smoke.py")


@dataclass(frozen=True)
class Distribution:
    """One distribution of this repository: its name, its folder, and the packages with a py.typed it ships."""

    name: str
    folder: str
    portions: tuple[str, ...]
    entry_points: dict[str, dict[str, str]] = field(default_factory=dict)


DISTRIBUTIONS = (
    Distribution(
        "symfonic-kernel",
        ".",
        ("symfonic/kernel", "symfonic/plugin", "symfonic/host", "symfonic/testing"),
        {"console_scripts": {"symfonic-kernel": "symfonic.host.cli:main"}},
    ),
    Distribution(
        "symfonic-tools",
        "plugins/symfonic-tools",
        ("symfonic/capabilities/tools",),
        {"symfonic.plugins": {"tools": "symfonic.capabilities.tools.plugin"}},
    ),
    Distribution(
        "symfonic-offline",
        "plugins/symfonic-offline",
        ("symfonic/offline",),
        {"symfonic.plugins": {"offline": "symfonic.offline.plugin"}},
    ),
    Distribution(
        "symfonic-example-shop", "examples/shop", ("shop_plugin",), {"symfonic.plugins": {"shop": "shop_plugin.plugin"}}
    ),
)

SHARED = ("symfonic", "symfonic/capabilities")
"""Folders that belong to no distribution: a file of ours there would hide the portions of others."""

CORE = "symfonic-core"
"""PyPI's distribution that shares the namespace, and owns the script ``symfonic`` and the package ``symfonic.cli``."""

HIDER = "symfonic==0.0.1"
"""PyPI's placeholder, whose ``symfonic/__init__.py`` hides every portion that lies in another folder."""


class CheckFailed(Exception):
    """What was to be proved is not so."""


def require(holds: object, text: str) -> None:
    """Go on only if it holds."""
    if not holds:
        raise CheckFailed(text)


def run(command: Sequence[str | Path], *, cwd: Path, may_fail: bool = False, **env: str) -> str:
    """Run a command without the caller's Python settings; its output is shown only if it fails."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "COV", "SYMFONIC_", "PYTEST"))
    }
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**kept, "PYTHONUTF8": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    require(
        may_fail or done.returncode == 0, f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}"
    )
    return done.stdout if done.returncode == 0 else f"{done.stdout}\nexit code {done.returncode}"


# What is built


def build(scratch: Path) -> dict[str, Path]:
    """A wheel of each distribution, by name."""
    dist = scratch / "dist"
    folders = [CHECKOUT / one.folder for one in DISTRIBUTIONS]
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", dist, *folders], cwd=scratch)
    wheels = {one.name.split("-0")[0].replace("_", "-"): one for one in dist.glob("*.whl")}
    require(set(wheels) == {one.name for one in DISTRIBUTIONS}, f"built {sorted(wheels)}")
    return wheels


def check_contents(one: Distribution, wheel: Path) -> None:
    """A wheel has its sources, its marks of being typed, its licence, its entry points, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    require(wheel.name.endswith("-py3-none-any.whl"), f"{wheel.name} is not for every Python")
    info = wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info"
    code = {name for name in files if not name.startswith(f"{info}/")}
    foreign = sorted(name for name in code if not name.startswith(tuple(f"{portion}/" for portion in one.portions)))
    require(not foreign, f"{wheel.name} has files outside its portions: {foreign}")  # __init__.py of SHARED among them
    missing = [portion for portion in one.portions if f"{portion}/py.typed" not in code]
    require(not missing, f"{wheel.name} has no py.typed in {missing}")
    source = CHECKOUT / one.folder / "src"
    there = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    there = {name for name in there if "__pycache__" not in name}
    require(code == there, f"{wheel.name} differs from its source folder by {sorted(code ^ there)}")
    licence = files.get(f"{info}/licenses/LICENSE")
    require(licence == (CHECKOUT / "LICENSE").read_bytes(), f"{wheel.name} has no licence, or another one")
    check_metadata(one, files[f"{info}/METADATA"].decode(), files.get(f"{info}/entry_points.txt", b"").decode())


def check_metadata(one: Distribution, metadata: str, entry_points: str) -> None:
    """Metadata says for which Python, under which licence; the entry points are the promised ones."""
    said = email.message_from_string(metadata)
    require(said["Name"] == one.name, f"{one.name} calls itself {said['Name']}")
    require(said["Requires-Python"] == ">=3.11", f"{one.name} requires Python {said['Requires-Python']}")
    require(said["License-Expression"] == "MIT", f"{one.name} is licensed {said['License-Expression']}")
    require(said.get_payload(), f"{one.name} has no description")
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    parser.read_string(entry_points)
    got = {section: dict(parser[section]) for section in parser.sections()}
    require(got == one.entry_points, f"{one.name} has the entry points {got}")


# What is installed


@dataclass(frozen=True)
class Environment:
    """A virtual environment outside the checkout, and where its portions must come from."""

    folder: Path
    source: Path

    @classmethod
    def create(cls, folder: Path, source: Path | None = None) -> Environment:
        """A new one, of the Python that runs this."""
        run([sys.executable, "-m", "venv", folder], cwd=folder.parent)
        return cls(folder, source or folder)

    def script(self, name: str) -> Path:
        """A script of the environment."""
        return self.folder / ("Scripts" if os.name == "nt" else "bin") / (f"{name}.exe" if os.name == "nt" else name)

    def pip(self, *arguments: str | Path) -> None:
        """Run pip."""
        run([self.script("python"), "-m", "pip", *arguments], cwd=self.folder)

    def smoke(self, *sources: Path) -> None:
        """Every module of every portion is imported from where it should be, entry points load, the README's command runs."""
        work = Path(tempfile.mkdtemp(dir=self.folder.parent))
        packages = [portion.replace("/", ".") for one in DISTRIBUTIONS for portion in one.portions]
        groups = {group: sorted(names) for one in DISTRIBUTIONS for group, names in one.entry_points.items()}
        groups["symfonic.plugins"] = sorted(
            n for one in DISTRIBUTIONS for n in one.entry_points.get("symfonic.plugins", ())
        )
        roots = [str(root) for root in (sources or (self.source,))]
        run([self.script("python"), SMOKE, repr((packages, groups, roots))], cwd=work)
        told = self.readme_command(work)
        require(
            "exit code" not in told and "offered 2 of 26 tools" in told and "completed after 2 rounds" in told, told
        )

    def readme_command(self, work: Path) -> str:
        """What the last step of the README's first command prints, in a folder with the shop's deployment alone."""
        shutil.copy(CHECKOUT / "examples" / "shop" / "symfonic.toml", work)
        readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
        command = re.search(r"<!-- run: bash -->\s*```bash\n(.*?)\n```", readme, re.DOTALL)
        require(command, "the README has no first command")
        program, *arguments = command[1].split("&&")[-1].split(maxsplit=3)  # type: ignore[index]  # required above
        return run([self.script(program), *arguments[:2], ast.literal_eval(arguments[2])], cwd=work, may_fail=True)


def test_requirements() -> list[str]:
    """What the tests need beside our distributions: pytest, and what tox.ini names."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(CHECKOUT / "tox.ini", encoding="utf-8")
    return ["pytest>=8.3", *(line for line in tox["testenv"]["deps"].split("\n") if line and not line.startswith("-e"))]


def run_tests(environment: Environment, scratch: Path, arguments: Sequence[str]) -> str:
    """The tests, copied; the docs they prove are read where they are. The last line of pytest."""
    copy = scratch / "tests-copied"
    without = shutil.ignore_patterns("__pycache__", ".*", "wheels", "typing")
    for path in ("tests", *(f"{one.folder}/tests" for one in DISTRIBUTIONS[1:])):
        shutil.copytree(CHECKOUT / path, copy / path, ignore=without)
    for path in ("pyproject.toml", "examples/shop/symfonic.toml"):  # pytest's settings, and the shop's deployment
        shutil.copy(CHECKOUT / path, copy / path)
    environment.pip("install", "--quiet", *test_requirements())
    python = environment.script("python")
    told = run([python, "-m", "pytest", "-q", *arguments], cwd=copy, SYMFONIC_CHECKOUT=str(CHECKOUT))
    return told.strip().splitlines()[-1]


def beside_core(environment: Environment, scratch: Path) -> str:
    """Beside symfonic-core both work, and neither has a file or a script of the other's; without it ours still do."""
    environment.pip("install", "--quiet", CORE)
    environment.smoke()
    code = (
        "import symfonic.cli, symfonic.core, importlib.metadata as m\n"
        f"ours = {[one.name for one in DISTRIBUTIONS]!r}\n"
        f"core = {{str(f) for f in m.files({CORE!r})}}\n"
        "assert not [f for one in ours for f in m.files(one) if str(f) in core]\n"
        f"assert 'symfonic' in {{e.name for e in m.distribution({CORE!r}).entry_points}}\n"
        f"print({CORE!r}, m.version({CORE!r}))"
    )
    version = run([environment.script("python"), "-c", code], cwd=scratch).split()[-1]
    require(environment.script("symfonic").exists(), f"the script of {CORE} is gone")
    environment.pip("uninstall", "--quiet", "--yes", CORE)
    environment.smoke()
    return f"{CORE} {version}"


def beside_hider(environment: Environment, scratch: Path) -> str:
    """Beside the placeholder, wheels in the same folder work; editable portions are hidden, and Python says which is missing.

    Nothing of ours can explain more: none of our modules is imported. The architecture page's warts say the cause.
    """
    environment.pip("install", "--quiet", "--no-deps", HIDER)
    if environment.source == environment.folder:
        environment.smoke()
        told = "works, since all portions lie in one folder"
    else:
        shown = environment.readme_command(scratch)
        require("exit code" in shown and "No module named 'symfonic.host'" in shown, shown)
        told = (
            "hidden, as documented: " + shown.strip().splitlines()[-3 if shown.strip().splitlines()[-2] == "" else -2]
        )
    environment.pip("uninstall", "--quiet", "--yes", HIDER.partition("=")[0])
    environment.smoke()
    return told


# All of it


class Steps:
    """Runs checks one by one and says what each came to."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.passed = 0

    def step(self, what: str, check: Callable[[], object]) -> object:
        """One check."""
        begun = time.monotonic()
        print(f"{what} ... ", end="", flush=True)
        try:
            answer = check()
        except CheckFailed as failed:
            print(f"FAILED\n{failed}")
            python = ".".join(map(str, sys.version_info[:3]))
            print(f"wheels on Python {python}: failed at check {self.passed + 1}: {what}")
            sys.exit(1)
        self.passed += 1
        note = f"; {answer}" if isinstance(answer, str) and answer else ""
        print(f"ok ({time.monotonic() - begun:.0f} s{note})")
        return answer


def main(arguments: Sequence[str]) -> None:
    """Build, look inside, install in every way, and run what is installed."""
    # A job in the background of a shell ignores interrupts, and so would the processes whose tests interrupt them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    steps = Steps()
    with tempfile.TemporaryDirectory(prefix="symfonic-wheels-", ignore_cleanup_errors=True) as folder:
        scratch = Path(folder).resolve()
        wheels: dict[str, Path] = {}
        steps.step("build a wheel of every distribution", lambda: wheels.update(build(scratch)))
        for one in DISTRIBUTIONS:
            steps.step(f"what is in {wheels[one.name].name}", lambda one=one: check_contents(one, wheels[one.name]))
        check_wheels_installed(steps, scratch, wheels, arguments)
        check_editable(steps, scratch)
    python = ".".join(map(str, sys.version_info[:3]))
    print(f"wheels on Python {python}: {steps.passed} checks passed in {time.monotonic() - steps.begun:.0f} s")


def check_wheels_installed(steps: Steps, scratch: Path, wheels: dict[str, Path], arguments: Sequence[str]) -> None:
    """Everything about wheels in a clean environment."""
    clean = Environment.create(scratch / "clean")
    steps.step("install the wheels", lambda: clean.pip("install", "--quiet", *wheels.values()))
    steps.step("requirements fit each other", lambda: clean.pip("check"))
    steps.step("wheels: imports, entry points, the README's command", clean.smoke)
    steps.step("wheels: the tests", lambda: run_tests(clean, scratch, arguments))
    steps.step(f"wheels: beside {CORE}, and after it is uninstalled", lambda: beside_core(clean, scratch))
    steps.step(f"wheels: beside {HIDER}", lambda: beside_hider(clean, scratch))
    steps.step("the kernel's wheel with an editable plugin", lambda: mixed(clean))


def mixed(environment: Environment) -> None:
    """A plugin author's case: the kernel from a wheel, the plugin editable; the namespace spans both."""
    environment.pip("install", "--quiet", "--no-deps", "--editable", CHECKOUT / "plugins" / "symfonic-tools")
    environment.smoke(environment.folder, CHECKOUT)


def check_editable(steps: Steps, scratch: Path) -> None:
    """Everything about editable installs in a clean environment."""
    editable = Environment.create(scratch / "editable", CHECKOUT)
    places = [part for one in DISTRIBUTIONS for part in ("--editable", str(CHECKOUT / one.folder))]
    steps.step("install everything editable", lambda: editable.pip("install", "--quiet", *places))
    steps.step("editable: imports, entry points, the README's command", editable.smoke)
    steps.step(f"editable: beside {CORE}, and after it is uninstalled", lambda: beside_core(editable, scratch))
    steps.step(f"editable: beside {HIDER}", lambda: beside_hider(editable, scratch))


if __name__ == "__main__":
    main(sys.argv[1:])
