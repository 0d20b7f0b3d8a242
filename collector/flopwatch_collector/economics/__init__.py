"""The breakeven of owning and renting, what follows from it, and what it is made from."""
