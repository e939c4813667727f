"""Equal-cost multipath: a hash of the flow, salted by each switch, picks one of the links that lead
nearer (RFC 2992); flows collide by chance."""

from __future__ import annotations

from eastwest.kernels.walks import HASH

LAW = HASH
