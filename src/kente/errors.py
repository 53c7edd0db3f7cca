"""Errors that are messages for people. The command line prints them without a traceback and leaves with their exit code."""


class KenteError(Exception):
    """Something a person can act on: what was seen, what was wanted, the next move."""

    exit_code = 1


class UsageError(KenteError):
    """The command or its input is not what it should be."""

    exit_code = 2


class ConfigError(UsageError):
    """A setting has a value it cannot have."""


class CorpusError(UsageError):
    """A text file cannot be read as the corpus it should be."""


class DocumentError(UsageError):
    """A file to be translated is not of the kind its name says, or of none that is known."""


class RunError(KenteError):
    """A run folder is missing, damaged or does not fit what is asked of it."""


class DiskFull(KenteError):
    """The disk has no room left; what stood there before still stands."""


class WorkerError(KenteError):
    """A process that shared the work ended before its part was done."""


class NoRun(RunError):
    """There is no run where one was named."""

    exit_code = 2


class Diverged(KenteError):
    """Training went wrong in numbers; the last good checkpoint stands."""

    exit_code = 3


class Interrupted(KenteError):
    """A signal asked us to stop; everything worth keeping is saved."""

    exit_code = 130
