"""The grammar of search-space and design files. It knows ranges, choices and units, not hardware."""

import math
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    field_validator,
    model_validator,
)

Value: TypeAlias = int | float | str
Written = StrictInt | Annotated[StrictFloat, Field(allow_inf_nan=False)] | StrictStr
Number = Annotated[StrictFloat, Field(allow_inf_nan=False)]
Positive = Annotated[StrictFloat, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[StrictInt, Field(ge=1, le=10_000_000)]
Direction = Literal["minimize", "maximize"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


def _one_type(values: tuple[Value, ...]) -> tuple[Value, ...]:
    if not values:
        raise ValueError("needs at least one choice")
    words = [isinstance(value, str) for value in values]
    if any(words) and not all(words):
        raise ValueError("mixes words and numbers; all choices of one parameter have one type")
    if len(set(values)) < len(values):
        raise ValueError("lists a choice twice")
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        raise ValueError("a choice is not a finite number")
    return values


class Choices(_Part):
    """One of a few values, all of one type."""

    choices: tuple[Written, ...]
    weights: tuple[Positive, ...] | None = Field(default=None, description="prior, one weight per choice")
    when: dict[str, tuple[Written, ...]] | None = Field(default=None, description="only where these have these values")

    _types = field_validator("choices")(_one_type)

    @model_validator(mode="after")
    def _a_weight_each(self) -> Self:
        if self.weights is not None and len(self.weights) != len(self.choices):
            raise ValueError(f"{len(self.weights)} weights for {len(self.choices)} choices")
        return self


class Range(_Part):
    """A number between two ends, both included."""

    low: Number
    high: Number
    step: Positive | None = None
    log: bool = False
    peak: Number | None = Field(default=None, description="prior: where you expect the best value")
    when: dict[str, tuple[Written, ...]] | None = None

    @model_validator(mode="after")
    def _ends_in_order(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"needs low < high, got {self.low:g} and {self.high:g}; a single value goes under fix")
        if self.log and self.low <= 0:
            raise ValueError(f"a log range needs low > 0, got {self.low:g}")
        if self.log and self.step is not None:
            raise ValueError("a log range has no step")
        if self.step is not None and self.step > self.high - self.low:
            raise ValueError(f"step {self.step:g} is wider than the range")
        if self.peak is not None and not self.low <= self.peak <= self.high:
            raise ValueError(f"peak {self.peak:g} lies outside {self.low:g} to {self.high:g}")
        return self


def _looks_like(entry: Any) -> str:
    """Which of the two kinds an entry under ``vary`` means, so that only that kind's errors are reported."""
    if isinstance(entry, Choices) or (isinstance(entry, dict) and not {"low", "high", "step"} & set(entry)):
        return "Choices"
    return "Range"


Options = Annotated[Annotated[Choices, Tag("Choices")] | Annotated[Range, Tag("Range")], Discriminator(_looks_like)]


class Limit(_Part):
    """A bound a user puts on a metric, beside the physical rules that always hold."""

    at_most: Number | None = None
    at_least: Number | None = None

    @model_validator(mode="after")
    def _one_side(self) -> Self:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError("needs exactly one of at_most and at_least")
        return self


class Training(_Part):
    """Pre-training, or fine-tuning with LoRA, of one model on one synchronous job."""

    kind: Literal["training"]
    model: str
    weight: Positive = 1.0
    accelerators_count: Count
    sequence_count: Count = Field(description="tokens of one sequence")
    global_batch_count: Count = Field(description="sequences of one step")
    precision: str = "bf16"


class Serving(_Part):
    """Serving of one model at service levels: aggregated, or with prefill and decode apart."""

    kind: Literal["serving"]
    model: str
    weight: Positive = 1.0
    input_count: Count = Field(description="prompt tokens of a request")
    output_count: Count = Field(description="generated tokens of a request")
    tpot_ms: Positive = Field(description="service level: time per output token, at most")
    ttft_ms: Positive = Field(description="service level: time to first token, at most")
    mode: Literal["aggregated", "disaggregated"] = "aggregated"
    precision: str = "fp8"
    accelerators_count: Count = 8
    speculative_tokens_count: Annotated[StrictFloat, Field(ge=1, le=8)] = Field(
        default=1.0, description="tokens accepted per decode step with multi-token prediction; 1 is plain decoding"
    )


Workload = Annotated[Training | Serving, Field(discriminator="kind")]


class Scenario(_Part):
    """Prices and use: whose money, of which year, for how long."""

    prices: str = "owner"
    year: Annotated[StrictInt, Field(ge=2020, le=2035)] = 2026
    electricity_usd_per_kwh: Positive | None = None
    accelerator_life_years: Positive | None = None
    capital_cost_frac: Annotated[StrictFloat, Field(ge=0, lt=1)] | None = None
    pue_ratio: Annotated[StrictFloat, Field(ge=1, le=3)] | None = None
    utilisation_frac: Annotated[StrictFloat, Field(gt=0, le=1)] | None = None
    volume_count: Count | None = None


class SearchPlan(_Part):
    """How to search; part of the question, so that a seed means the same on any machine."""

    sampler: str = "auto"
    trials: Count = 200
    batch: Annotated[StrictInt, Field(ge=1, le=4096)] = 16
    seed: Annotated[StrictInt, Field(ge=0, le=2**31 - 1)] = 1
    in_flight: Annotated[StrictInt, Field(ge=1, le=4096)] | None = Field(
        default=None,
        exclude_if=lambda value: value is None,  # a space that does not say keeps the digest it had
        description="batches being evaluated at once; without it what suits the sampler",
    )


class Space(_Part):
    """One search-space file; without ``vary`` it is a design file."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    question: str = Field(min_length=1)
    base: str = Field(description="platform of the catalog that supplies every parameter not decided here")
    workloads: dict[str, Workload] = Field(min_length=1)
    scenario: Scenario = Scenario()
    vary: dict[str, Options] = {}
    fix: dict[str, Written] = {}
    objectives: dict[str, Direction] = {"usd_per_mtok": "minimize"}
    constraints: dict[str, Limit] = {}
    search: SearchPlan = SearchPlan()
    baselines: tuple[str, ...] | None = None
    mapping: dict[str, dict[str, Written]] | None = Field(default=None, description="pinned layout per workload")

    @model_validator(mode="after")
    def _decided_once(self) -> Self:
        twice = sorted(set(self.vary) & set(self.fix))
        if twice:
            raise ValueError(f"{twice[0]} stands under vary and under fix; decide it once")
        if not 1 <= len(self.objectives) <= 3:
            raise ValueError(f"objectives: one to three metrics, got {len(self.objectives)}")
        for name, options in self.vary.items():
            self._check_parent(name, options)
        unknown = sorted(set(self.mapping or {}) - set(self.workloads))
        if unknown:
            raise ValueError(f"mapping: no workload {unknown[0]!r}")
        return self

    def _check_parent(self, name: str, options: Choices | Range) -> None:
        if not options.when:
            return
        if len(options.when) != 1:
            raise ValueError(f"vary: {name}: when names exactly one other parameter")
        parent, wanted = next(iter(options.when.items()))
        over = self.vary.get(parent)
        if not isinstance(over, Choices):
            raise ValueError(f"vary: {name}: when: {parent!r} is not a parameter with choices under vary")
        if over.when:
            raise ValueError(f"vary: {name}: when: {parent!r} is itself conditional; one level only")
        stray = [value for value in wanted if value not in over.choices]
        if stray or not wanted:
            raise ValueError(f"vary: {name}: when: {stray or 'nothing'} is not a choice of {parent}")
