"""The grammar of search-space and design files. It knows ranges, choices and units, not hardware."""

import math
import re
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from codesign.errors import nearest
from codesign.space.faults import Fault, Places

Value: TypeAlias = int | float | str
Written = StrictInt | Annotated[StrictFloat, Field(allow_inf_nan=False)] | StrictStr
Number = Annotated[StrictFloat, Field(allow_inf_nan=False)]
Positive = Annotated[StrictFloat, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[StrictInt, Field(ge=1, le=10_000_000)]
Direction = Literal["minimize", "maximize"]
PARTS_DISAGREE = "parts_disagree"  #: kind of the error that carries faults between the keys of a space
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


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
        wrong = []
        if self.log and self.low <= 0:
            wrong.append(f"a log range needs low > 0, got {self.low:g}")
        if self.log and self.step is not None:
            wrong.append("a log range has no step")
        if self.step is not None and self.step > self.high - self.low:
            wrong.append(f"step {self.step:g} is wider than the range")
        if self.peak is not None and not self.low <= self.peak <= self.high:
            wrong.append(f"peak {self.peak:g} lies outside {self.low:g} to {self.high:g}")
        if wrong:
            raise ValueError("; ".join(wrong))
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

    name: str
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
    _places: Places = PrivateAttr(default=Places("", {}))

    @property
    def places(self) -> Places:
        """Where its keys stand, for complaints."""
        return self._places if self._places.name else Places(self.name, {})

    def read_from(self, places: Places) -> Self:
        """The space, knowing the file it was read from."""
        self._places = places
        return self

    @field_validator("name")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"wanted a lower-case letter, then lower-case letters, digits and _, 64 at most; got {name!r}"
            )
        return name

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        faults = [
            *(
                Fault(("fix", name), "stands under vary and under fix; decide it once")
                for name in self.fix
                if name in self.vary
            ),
            *(fault for name, options in self.vary.items() for fault in self._parent_faults(name, options)),
            *(
                Fault(("mapping", name), f"no workload {name!r}{nearest(name, self.workloads)}")
                for name in self.mapping or {}
                if name not in self.workloads
            ),
        ]
        if not 1 <= len(self.objectives) <= 3:
            faults.append(Fault(("objectives",), f"wanted one to three metrics; got {len(self.objectives)}"))
        if faults:
            said = "; ".join(f"{'.'.join(map(str, fault.keys))}: {fault.says}" for fault in faults)
            raise PydanticCustomError(PARTS_DISAGREE, "{said}", {"said": said, "faults": faults})
        return self

    def _parent_faults(self, name: str, options: Choices | Range) -> list[Fault]:
        if options.when is None:
            return []
        at: tuple[str, ...] = ("vary", name, "when")
        if len(options.when) != 1:
            return [Fault(at, f"names exactly one other parameter; got {len(options.when)}")]
        parent, wanted = next(iter(options.when.items()))
        over = self.vary.get(parent)
        if not isinstance(over, Choices):
            known = nearest(parent, [other for other, one in self.vary.items() if isinstance(one, Choices)])
            return [Fault((*at, parent), f"{parent!r} is not a parameter with choices under vary{known}")]
        if over.when:
            return [Fault((*at, parent), f"{parent!r} is itself conditional; one level only")]
        if not wanted:
            return [Fault((*at, parent), f"names no choice of {parent}")]
        valid = ", ".join(map(str, over.choices))
        return [
            Fault((*at, parent, i), f"{value!r} is not a choice of {parent}; valid: {valid}")
            for i, value in enumerate(wanted)
            if value not in over.choices
        ]
