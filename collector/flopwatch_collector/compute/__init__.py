"""Pure arithmetic, values and now in, values out."""
