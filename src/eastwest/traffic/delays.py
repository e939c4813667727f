"""What a transport adds to a fluid's time. One idea: a delay before the bytes flow stands for all
that is lost while a window opens."""

from __future__ import annotations

import numpy as np

from eastwest.traffic import Floats


def slow_start_s(
    size_bytes: Floats, rtt_s: Floats, rate_Bps: Floats, initial_window_bytes: float
) -> Floats:
    """Return how much longer messages take while TCP's window opens, than at their rate at once.

    All arrays have one entry a message. A window of ``initial_window_bytes`` doubles each round
    trip without loss (RFC 5681) until it covers rate x round trip, or until all is sent: in k
    rounds it sends w (2^k - 1) bytes and each of these rounds waits for the rest of its round trip
    (Cardwell, Savage and Anderson, Modeling TCP latency, 2000).
    """
    window = float(initial_window_bytes)
    to_fill = np.ceil(np.log2(np.maximum(1.0, rate_Bps * rtt_s / window)))
    # The last round needs no reply, so a message of one window waits for nothing.
    to_send = np.ceil(np.log2(size_bytes / window + 1.0)) - 1.0
    rounds = np.maximum(0.0, np.minimum(to_fill, to_send))
    lost: Floats = rounds * rtt_s - window * (2.0**rounds - 1.0) / rate_Bps
    return np.maximum(0.0, lost)
