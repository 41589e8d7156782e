"""Run by check_wheels.py in an environment under test: imports every module, loads every entry point.

Its one argument is a tuple: packages, entry point names by group, and the folders modules may come from.
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import pkgutil
import sys
from pathlib import Path

packages, groups, roots = ast.literal_eval(sys.argv[1])
allowed = [Path(root).resolve() for root in roots]
# The scripts' own folder stands first on the path; nothing may be found through it.
sys.path.pop(0)

count = 0
for package in packages:
    found = importlib.import_module(package)
    names = [package, *(one.name for one in pkgutil.walk_packages(found.__path__, f"{package}."))]
    for name in names:
        if name.endswith(".__main__"):
            continue
        file = Path(importlib.import_module(name).__file__ or "").resolve()
        if not any(file.is_relative_to(root) for root in allowed):
            sys.exit(f"{name} was imported from {file}, which is in none of {roots}")
        count += 1
    if not Path(found.__path__[0], "py.typed").is_file():
        sys.exit(f"{package} has no py.typed")
for group, wanted in groups.items():
    there = {one.name: one for one in importlib.metadata.entry_points(group=group)}
    for name in wanted:
        there[name].load()
print(f"{count} modules of {len(packages)} packages")
