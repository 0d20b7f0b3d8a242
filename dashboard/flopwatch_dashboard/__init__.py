"""The dashboard: pages of figures and components, fed by the Query port."""
