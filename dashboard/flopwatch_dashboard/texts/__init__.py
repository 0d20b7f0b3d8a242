"""The texts of the interface: one flat table a language."""
