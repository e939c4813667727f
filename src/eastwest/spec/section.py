"""What all parts of a cluster file share. One idea: frozen, no unknown keys, no silent
conversions."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A mapping of the file: frozen, no unknown keys, no silent conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


Name = Annotated[str, Field(min_length=1, max_length=200)]
