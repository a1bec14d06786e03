"""Search spaces and design files: what may vary, what is fixed, for which work, and what counts as better."""

from codesign.space.faults import Fault
from codesign.space.load import load_space, parse_space, refuse, shipped_spaces
from codesign.space.schema import Choices, Limit, Range, Scenario, SearchPlan, Serving, Space, Training, Value, Workload

__all__ = [
    "Choices",
    "Fault",
    "Limit",
    "Range",
    "Scenario",
    "SearchPlan",
    "Serving",
    "Space",
    "Training",
    "Value",
    "Workload",
    "load_space",
    "parse_space",
    "refuse",
    "shipped_spaces",
]
