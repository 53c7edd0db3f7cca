"""The server: runs of Kente behind LibreTranslate's HTTP interface, and behind a richer one of our own.

    connection -> front -> routes -> office -> queue -> worker -> translators
    (bytes)     (every     (what is   (reads, waits,   (batches)   (engines)
                 request)   asked)     puts together)

The front half runs in one asyncio loop, the back half in one thread that keeps the engines busy. Nothing here imports torch: an engine
that needs it does.
"""
