"""The layouts a search tries: every one that divides the model and the machine."""

from typing import cast

import numpy as np

from codesign.model.workload.serving_inputs import Pool, ServingLayout
from codesign.model.workload.transformer import Transformer

#: users of one attention replica that the search tries
REPLICA_USERS = (
    *(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512),
    *(640, 768, 896, 1024),
)
#: users of one decode replica and accelerators of the prefill pool over those of the decode pool, with two pools
POOLED_USERS = (1, 4, 16, 32, 64, 128, 256, 512)
POOL_RATIOS = (0.25, 0.5, 1.0, 2.0, 4.0)
LARGEST_TP = 64

_Engine = tuple[int, int, int, int]  # tp, dp, pp, ep


def serving_layouts(transformer: Transformer, accelerators_count: int, disaggregated: bool = False) -> ServingLayout:
    """Every layout of a model on a machine: sizes are powers of two that divide heads, experts, layers and the machine.

    Aggregated engines fill the machine with equal copies. With two pools, each is filled with equal engines and their
    sizes stand in a stated ratio. With attention replicas the experts spread over the whole engine.

    Args:
        transformer: One model (plain numbers).
        accelerators_count: Accelerators that serve it. [count], >= 1
        disaggregated: Also layouts with a pool of their own for prompts.

    Returns:
        The layouts as columns ``(m,)``.

    Source:
        definition: every combination that divides.

    >>> from codesign.model.workload.transformer import LLAMA_3_8B
    >>> serving_layouts(LLAMA_3_8B, 2).users_count.size  # two copies, two tensor ranks or two stages
    90
    """
    engines = _engines(transformer, accelerators_count)
    rows: list[tuple[float, ...]] = []
    for engine in engines:
        workers = accelerators_count // _size(engine)
        both = _copies(engine, workers) * 2
        rows += [(*both, 0.0, users * engine[1] * workers) for users in REPLICA_USERS]
    if disaggregated:
        rows += _pooled(engines, accelerators_count)
    columns = [np.array(column, dtype=np.float64) for column in zip(*rows, strict=True)]
    return ServingLayout(Pool(*columns[:5]), Pool(*columns[5:10]), columns[10], columns[11])


def _size(engine: _Engine) -> int:
    return engine[0] * engine[1] * engine[2]


def _copies(engine: _Engine, workers: int) -> tuple[int, ...]:
    return (workers, *engine)


def _powers(limit: int) -> list[int]:
    return [1 << i for i in range(max(limit, 1).bit_length())]


def _engines(t: Transformer, accelerators: int) -> list[_Engine]:
    heads, experts, layers = (int(cast(float, x)) for x in (t.heads_count, t.experts_count, t.layers_count))
    found = []
    for tp in (p for p in _powers(min(LARGEST_TP, accelerators)) if heads % p == 0):
        for dp in _powers(accelerators // tp):
            for pp in (p for p in _powers(accelerators // (tp * dp)) if p <= layers):
                if accelerators % (tp * dp * pp) == 0 and (dp == 1 or experts > 0):
                    found += [(tp, dp, pp, ep) for ep in _expert_groups(tp, dp, experts)]
    return found


def _expert_groups(tp: int, dp: int, experts: int) -> list[int]:
    """Whole experts on each rank where attention is replicated; either way where it is not."""
    ranks = tp * dp
    if experts == 0 or ranks == 1:
        return [1]
    whole = [ranks] if experts % ranks == 0 else []
    return whole if dp > 1 else [1, *whole]


def _pooled(engines: list[_Engine], accelerators: int) -> list[tuple[float, ...]]:
    rows: list[tuple[float, ...]] = []
    flat = [engine for engine in engines if engine[2] == 1]
    for ratio in POOL_RATIOS:
        entry_size = round(accelerators * ratio / (1.0 + ratio))
        for entry in flat:
            first = entry_size // _size(entry)
            for answer in flat:
                second = (accelerators - first * _size(entry)) // _size(answer)
                if first and second:
                    both = (*_copies(entry, first), *_copies(answer, second))
                    rows += [(*both, 1.0, users * answer[1] * second) for users in POOLED_USERS]
    return rows
