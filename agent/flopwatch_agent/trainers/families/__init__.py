"""Grammars of trainer logs as tables: one module for each group of relatives."""
