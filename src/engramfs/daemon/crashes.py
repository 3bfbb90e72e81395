"""How long to wait after a worker crashed, when to give its connection up, and when nothing helps."""

LIMIT = 5  # so many crashes in a row of its own, none of which served for `SETTLED`: nothing helps
SETTLED = 0.1  # seconds of serving after which a crash begins a new row: a request that kills does so at once
SUSPECT = 3  # so many in a row put the blame on the connection: a request that kills whoever reads it
LONGEST = 30.0  # seconds between two workers that crash by themselves
LONGEST_OUTSIDE = 1.0  # where somebody kills them: clients wait for the next one


class Crashes:
    """The first crash of a row costs no wait, the next 0.1 s, then twice as long each time.

    One that came from outside (somebody sent SIGKILL) is no fault of worker or connection.
    """

    def __init__(self) -> None:
        self._row = 0
        self._blamed = 0  # of the row

    def served(self, seconds: float) -> None:
        """A worker ended, however that was, and had served so long."""
        if seconds >= SETTLED:
            self._row = self._blamed = 0

    def delay(self, *, from_outside: bool = False) -> float:
        """Record a crash; seconds to wait before the next worker."""
        self._row += 1
        self._blamed += not from_outside
        if self._row == 1:
            return 0.0
        return min(0.05 * 2.0 ** (self._row - 1), LONGEST if self._blamed else LONGEST_OUTSIDE)

    @property
    def connection_is_suspect(self) -> bool:
        return self._blamed >= SUSPECT

    @property
    def is_hopeless(self) -> bool:
        return self._blamed >= LIMIT
