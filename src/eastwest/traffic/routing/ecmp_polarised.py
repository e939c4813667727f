"""Equal-cost multipath whose switches all hash alike. What one tier has picked together, the next
picks together again, so that part of its links stay idle."""

from __future__ import annotations

from eastwest.kernels.walks import SHARED_HASH

LAW = SHARED_HASH
