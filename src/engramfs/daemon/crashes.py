"""How long to wait after a worker crashed, and when to give up."""

LIMIT = 5  # so many crashes
WINDOW = 10.0  # within so many seconds are too many


class Crashes:
    """The first crash in a while costs no wait, the next 0.1 s, then twice as long each time."""

    def __init__(self) -> None:
        self._times: list[float] = []

    def delay(self, now: float) -> float | None:
        """Record a crash at `now` (monotonic seconds); seconds to wait, or None to give up."""
        self._times = [at for at in self._times if now - at < WINDOW] + [now]
        if len(self._times) >= LIMIT:
            return None
        return 0.0 if len(self._times) == 1 else 0.05 * 2.0 ** (len(self._times) - 1)
