"""Words people use for products, in two languages."""

from __future__ import annotations

import pytest

from shop_plugin.matching import best_matches, fold

NAMES = {
    "desk": "desk lamp lámpara de escritorio",
    "floor": "floor lamp lámpara de pie",
    "table": "coffee table mesa de centro",
    "cushion": "cushion cojín",
    "shelf": "bookcase estantería",
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("lamp", ["desk", "floor"]),
        ("¿Cuántas LÁMPARAS VENDIDAS en mayo?", ["desk", "floor"]),
        ("lamparas de pie", ["floor"]),
        ("desk lamps", ["desk"]),
        ("cojines", ["cushion"]),
        ("estanterias", ["shelf"]),
        ("mesas", ["table"]),
        ("", []),
        ("de", []),
        ("pianos", []),
    ],
)
def test_a_text_finds_the_names_it_shares_most_words_with(text: str, found: list[str]) -> None:
    """Case, accents, plurals and words beside the name do not matter."""
    assert best_matches(text, NAMES) == found


def test_folding_is_idempotent() -> None:
    """A folded text folds to itself."""
    assert fold(fold("LÁMPARAS Straße")) == fold("LÁMPARAS Straße") == "lamparas strasse"
