"""Hypothesis searches anew at each run, but for CI, where the same commit must give the same
verdict. No test has a deadline: a first call compiles."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("here", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "here")
