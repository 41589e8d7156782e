"""An example plugin: a small furniture shop with everything a plugin can contribute."""
