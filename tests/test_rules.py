"""Every rule of the architecture page has a test named after it, where the page says."""

from __future__ import annotations

import re

from tests.docs_support import ROOT, table

FAMILIES = {
    "PAL": 22, "IPL": 6, "STG": 12, "PRE": 5, "REQ": 2, "RES": 1, "TRN": 10, "EVT": 2, "KEY": 6,
}  # fmt: skip


def test_every_rule_has_a_test_named_after_it() -> None:
    """Each row of the rule table names files that hold a test named after the rule's id."""
    for rule, sentence, files in table("docs/architecture.md", "<!-- rules -->"):
        named = rule.lower().replace("-", "_")
        paths = re.findall(r"`([^`]+)`", files)
        assert paths, f"{rule} ({sentence}) names no test"
        for path in paths:
            assert re.search(rf"def test_{named}_", (ROOT / path).read_text(encoding="utf-8")), (
                f"{path} tests no {rule}"
            )


def test_no_rule_is_left_out() -> None:
    """The table has every id of every family, without gaps."""
    rules = {row[0] for row in table("docs/architecture.md", "<!-- rules -->")}
    wanted = {f"{family}-{number}" for family, count in FAMILIES.items() for number in range(1, count + 1)}
    assert rules == wanted | {f"TLS-{number}" for number in range(4)}
