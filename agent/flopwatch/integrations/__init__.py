"""Callbacks for training libraries, one module each: import the one of the library you train with."""
