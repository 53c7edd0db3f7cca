"""Exports held against their run, each in the environment of the program it is for: nothing of Kente is imported here."""
