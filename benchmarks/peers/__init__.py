"""One adapter for each peer, run inside the peer's own environment: a job comes in as JSON, a result goes out as one line of JSON."""
