"""Hypothesis searches anew at each run, but for CI, where the same commit must give the same
verdict."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")
