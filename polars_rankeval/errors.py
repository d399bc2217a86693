"""The one exception of the package."""


class RankEvalError(ValueError):
    """A table, a measure or a parameter that cannot be evaluated as it stands.

    The message names the column, the number of offending rows, one example query, and what to do.
    Errors that Polars states well (a missing column, an unreadable file) stay Polars' own.
    """
