"""Kente beside what people would pick instead, measured in one interleaved run: `make bench`, or `python -m benchmarks --help`."""
