"""Hugging Face configs as shapes."""
