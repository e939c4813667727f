"""Packet spraying, and adaptive routing at its best: every link that leads nearer carries an equal
share."""

from __future__ import annotations

from eastwest.kernels.walks import ALL

LAW = ALL
