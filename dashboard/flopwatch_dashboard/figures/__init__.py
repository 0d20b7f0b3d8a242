"""Values to plotly figures as plain dicts; pure."""
