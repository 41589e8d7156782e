"""A folder of fake installed plugins for each test, and the command line run in this process."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from tests.host.support import FakeSite, make_site

from symfonic.host.cli import main


@attrs.frozen
class Done:
    """How a command ended.

    Args:
        code: Its exit code.
        out: What it wrote on standard output.
        err: What it wrote on standard error.
    """

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


Cli = Callable[..., Done]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSite]:
    """A fake site on ``sys.path``, its folder the current one."""
    made = make_site(tmp_path / "site", monkeypatch)
    first = next(made)
    monkeypatch.chdir(first.root)
    yield first
    next(made, None)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command as the console script does, in this process; no mistake of a user may show a traceback."""

    def run(*args: str, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(args))
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        assert "Traceback" not in out + err
        assert "internal error" not in err
        return Done(ended.value.code, out, err)

    return run
