"""A deterministic, rule-based stand-in for a chat model; it is no language model."""
