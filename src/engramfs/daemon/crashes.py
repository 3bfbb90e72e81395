"""How long to wait after a worker crashed, when to give its connection up, and when to give up at all."""

LIMIT = 5  # so many crashes in a row, none of which served for `SETTLED`
SETTLED = 0.1  # seconds of serving after which a crash begins a new row: a request that kills does so at once
SUSPECT = 3  # so many in a row put the blame on the connection: a request that kills whoever reads it


class Crashes:
    """The first crash of a row costs no wait, the next 0.1 s, then twice as long each time."""

    def __init__(self) -> None:
        self._row = 0
        self._blamed = 0  # of the row

    def delay(self, served: float, *, from_outside: bool = False) -> float | None:
        """Record the crash of a worker that served for `served` seconds; seconds to wait, None: give up.

        One that came `from_outside` (somebody sent SIGKILL) is no fault of the connection.
        """
        if served >= SETTLED:
            self._row = self._blamed = 0
        self._row += 1
        self._blamed += not from_outside
        if self._row >= LIMIT:
            return None
        return 0.0 if self._row == 1 else 0.05 * 2.0 ** (self._row - 1)

    @property
    def connection_is_suspect(self) -> bool:
        return self._blamed >= SUSPECT
