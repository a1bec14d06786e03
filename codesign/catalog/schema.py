"""What a fact must say about itself before the model may use it."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Grade = Literal["A", "B", "C", "T", "M", "P", "S", "D", "X"]


class Source(BaseModel):
    """Where facts come from; one entry in ``data/sources.yaml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(min_length=1)
    publisher: str = Field(min_length=1)
    year: int = Field(ge=1900, le=2100)
    url: str | None = None


class Fact(BaseModel):
    """One number, its unit, its range, and where it is written down."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    value: float = Field(allow_inf_nan=False)
    unit: str
    low: float = Field(allow_inf_nan=False)
    high: float = Field(allow_inf_nan=False)
    kind: Literal["published", "estimate"]
    source: str
    where: str = Field(min_length=1, description="page, table, bullet: enough to find it again")
    year: int = Field(ge=1980, le=2100, description="of the value; for money also the year of that money")
    grade: Grade | None = None
    range: Literal["stated", "not stated"] = "stated"
    note: str = ""

    @model_validator(mode="after")
    def _range_holds_value(self) -> Self:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"need low <= value <= high, got {self.low}, {self.value}, {self.high}")
        if self.kind == "estimate" and not self.note:
            raise ValueError("an estimate needs a note that says how it was reached")
        if self.range == "not stated" and not self.low == self.value == self.high and not self.note:
            raise ValueError("a range the source does not state needs a note that argues it")
        return self


class Constant(BaseModel):
    """A factor we fitted, with the rows it was fitted to; lives in ``data/calibration/``, never among facts."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    value: float = Field(allow_inf_nan=False)
    unit: str
    low: float = Field(allow_inf_nan=False, description="lower bound of the fit")
    high: float = Field(allow_inf_nan=False, description="upper bound of the fit")
    prior: float | None = Field(default=None, allow_inf_nan=False)
    meaning: str = Field(min_length=1)
    rows: str = Field(min_length=1, description="file and filter of the rows it was fitted to, or 'stated' with reason")
    fit: str = Field(min_length=1, description="name of the fit that `codesign calibrate` runs")

    @model_validator(mode="after")
    def _bounds_hold_value(self) -> Self:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"need low <= value <= high, got {self.low}, {self.value}, {self.high}")
        return self
