"""Hypothesis searches anew at each run, but for CI, where the same commit must give the same
verdict. No test has a deadline: a first call compiles."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("here", deadline=None)
# Many faults, each tried by the same few cases (tools/mutants.py).
settings.register_profile("mutants", derandomize=True, deadline=None, max_examples=10)
PROFILES = {"": "here", "mutants": "mutants"}
settings.load_profile(PROFILES.get(os.environ.get("CI", ""), "ci"))
