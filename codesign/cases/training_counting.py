"""What a row reports, and the same quantity from a predicted step."""

import re

import numpy as np

from codesign.cases.rows import CaseRows, Predictions
from codesign.model.workload.training import TrainingStep
from codesign.model.workload.training_inputs import TrainingJob
from codesign.model.workload.transformer import (
    Transformer,
    matrix_flop_per_token,
)
from codesign.units import Array, s_from_ns

GIB = 1024.0**3
MEMORY = re.compile(r"\bmemory\b")


def compare(
    rows: CaseRows, step: TrainingStep, t: Transformer, job: TrainingJob, refused: list[str | None]
) -> Predictions:
    """Step time where it is printed, else tokens per second and accelerator, else the value in its own unit."""
    seconds = np.asarray(s_from_ns(step.step_ns))
    count = rows.numbers("n_accel")
    tokens = np.asarray(job.global_batch_count * job.sequence_count) / (seconds * count)
    measured_step, measured_tokens, value = (rows.numbers(n) for n in ("step_time_s", "tokens_s_accel", "value"))
    by_step = np.isfinite(measured_step)
    by_tokens = ~by_step & np.isfinite(measured_tokens)
    predicted = _value(rows, step, t, job, tokens, count)
    rest = ~by_step & ~by_tokens
    return Predictions(
        metrics={
            "step_time_s": (seconds, np.where(by_step, measured_step, np.nan)),
            "tokens_s_accel": (tokens, np.where(by_tokens, measured_tokens, np.nan)),
            "value": (predicted, np.where(rest, value, np.nan)),
        },
        refused=refused,
    )


def _value(rows: CaseRows, step: TrainingStep, t: Transformer, job: TrainingJob, tokens: Array, count: Array) -> Array:
    """The value of a row in its unit: TFLOP/s by the stated counting, GiB by part, or tokens per second."""
    out = np.array(tokens)
    rate = tokens * _flop_per_token(rows, t, job) / 1e12
    memory = step.memory
    state = memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes
    metrics, units = rows.text("metric"), rows.text("unit")
    for i, (metric, unit) in enumerate(zip(metrics, units, strict=True)):
        if MEMORY.search(metric):
            part = state if "params" in metric else memory.activations_bytes
            out[i] = np.broadcast_to(part, out.shape)[i] / GIB
        elif unit == "TFLOP/s":
            out[i] = rate[i]
        elif "total" in metric or metric == "tokens/s":
            out[i] = tokens[i] * count[i]
    return out


def _flop_per_token(rows: CaseRows, t: Transformer, job: TrainingJob) -> Array:
    """Operations per token as the sources count them: attention unmasked, and the recomputed forward where included.

    A forward costs one, a backward two; hardware counts add the recomputed forward of the layers but not of the head.
    """
    sequence = np.asarray(job.sequence_count)
    matrix = np.asarray(matrix_flop_per_token(t))
    attention = 4.0 * np.asarray(t.attention_layers_count * t.heads_count * t.head_dim_count) * sequence
    head = 2.0 * np.asarray(t.vocab_count * t.hidden_count)
    hardware = np.array(["incl. recompute" in metric for metric in rows.text("metric")])
    return np.asarray(3.0 * (matrix + attention) + np.where(hardware, matrix - head + attention, 0.0))
