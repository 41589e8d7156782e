"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from uuid import uuid4

__all__ = ["write_whole"]


def write_whole(path: Path, text: str) -> None:
    """Write a text file by way of a temporary one beside it, so that no reader and no crash ever sees half of it.

    A file that is replaced keeps its mode; a symbolic link keeps pointing to it.

    Raises:
        OSError: It cannot be written; what was there is untouched.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        raise FileExistsError(0, "is a folder" if target.is_dir() else "is no plain file")
    half = target.with_name(f".{uuid4().hex}.tmp")
    try:
        with half.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, half)
        half.replace(target)
    except BaseException:
        half.unlink(missing_ok=True)
        raise
