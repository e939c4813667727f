"""Destination modulo k: each tier upwards takes the next digit of the target's number, so that the
targets of a leaf come down over different switches (Zahavi, 2012; the base of OpenSM's ftree)."""

from __future__ import annotations

from eastwest.kernels.walks import MODULO

LAW = MODULO
