"""How users of a closed loop divide their time between waiting for the first token and receiving the others."""

import numpy as np

from codesign.units import Numeric, empirical


def running_sequences_count(users_count: Numeric, occupancy_frac: Numeric) -> Numeric:
    """Sequences in a decode step as one of them sees it: itself and the others that are running.

    Args:
        users_count: Users of one attention replica. [count], > 0
        occupancy_frac: Share of its time that a user receives tokens. [1], 0 to 1

    Returns:
        Sequences in the step. [count], >= 1

    Source:
        definition: a step contains the one who looks at it.

    >>> float(running_sequences_count(users_count=5.0, occupancy_frac=0.5))
    3.0
    """
    return 1.0 + occupancy_frac * np.maximum(users_count - 1.0, 0.0)


def occupancy_frac(
    osl_count: Numeric,
    step_ns: Numeric,
    step_per_user_ns: Numeric,
    wait_ns: Numeric,
    wait_steps_count: Numeric,
    slots_frac: Numeric,
) -> Numeric:
    """Share of its time that a user of a closed loop receives tokens, where the step grows with that share.

    A cycle is a wait (fixed, and some steps) and ``osl`` steps; a step lasts ``step + share x step_per_user``. Users
    beyond the slots of the cache queue. The balance is a quadratic equation with one positive root.

    Args:
        osl_count: Tokens of an answer. [count], > 0
        step_ns: Step with nobody else running. [ns], > 0
        step_per_user_ns: What the step grows by when all users run. [ns], >= 0
        wait_ns: Wait for the first token, its fixed part. [ns], >= 0
        wait_steps_count: Wait for the first token, in steps. [count], >= 0
        slots_frac: Slots of the cache over users, at most one. [1], > 0 to 1

    Returns:
        Share. [1], 0 to slots_frac

    Source:
        little-1961: users in a stage are to all users as time in the stage is to the cycle.

    >>> float(occupancy_frac(100.0, 10.0, 0.0, 1000.0, 0.0, 1.0))
    0.5
    """
    growth_ns = np.maximum(step_per_user_ns, 0.0 * step_per_user_ns)  # a chord over a saw-tooth may point down
    square = (osl_count + wait_steps_count) * growth_ns
    linear = (osl_count + wait_steps_count) * step_ns + wait_ns - slots_frac * osl_count * growth_ns
    constant = slots_frac * osl_count * step_ns
    root = np.sqrt(linear * linear + 4.0 * square * constant)
    # one root, written twice so that nothing cancels; a negative linear term means a positive square one
    growing = np.where(square > 0.0, 2.0 * square, root + np.abs(linear))
    return np.where(linear > 0.0, 2.0 * constant / (np.abs(linear) + root), (root - linear) / growing)


def starved_occupancy_frac(
    osl_count: Numeric, step_ns: Numeric, step_per_user_ns: Numeric, supply_ns: Numeric
) -> Numeric:
    """Share of its time that a user receives tokens when prompts arrive too slowly to keep all users running.

    Args:
        osl_count: Tokens of an answer. [count], > 0
        step_ns: Step with nobody else running. [ns], > 0
        step_per_user_ns: What the step grows by when all users run. [ns], >= 0
        supply_ns: Time in which the prompts of all users are computed. [ns], > 0

    Returns:
        Share. [1]; above one where the supply does not bind.

    Source:
        little-1961: a user's cycle cannot be shorter than the supply takes to serve all users.

    >>> float(starved_occupancy_frac(100.0, 10.0, 0.0, 4000.0))
    0.25
    """
    spare_ns = np.maximum(supply_ns - osl_count * step_per_user_ns, 1e-9 * supply_ns)
    return osl_count * step_ns / spare_ns


@empirical("serving.csv, mode agg, ttft_ms")
def first_token_ns(
    prompt_ns: Numeric,
    others_count: Numeric,
    tpot_ns: Numeric,
    prompt_ratio: Numeric,
    queue_frac: Numeric,
    step_ratio: Numeric,
    start_ns: Numeric,
) -> Numeric:
    """Wait for the first token in an engine that also decodes, a free slot given.

    The own prompt (with what else runs in its passes), a share of the other users' prompts, the steps under way, and
    request handling.

    Args:
        prompt_ns: Time of one prompt. [ns], > 0
        others_count: Other users of the same replica. [count], >= 0
        tpot_ns: Time of a decode step with its interference. [ns], > 0
        prompt_ratio: Own prompt as experienced over `prompt_ns`. [1], >= 1
        queue_frac: Share of the others' prompts waited for. [1], 0 to 1
        step_ratio: Steps waited for. [1], >= 0
        start_ns: Request handling. [ns], >= 0

    Returns:
        Wait. [ns]

    Source:
        definition: the sum of what is waited for.

    >>> first_token_ns(10.0, 4.0, 5.0, 2.0, 0.5, 1.0, 3.0)
    48.0
    """
    return prompt_ns * (prompt_ratio + queue_frac * others_count) + step_ratio * tpot_ns + start_ns


@empirical("serving.csv, mode disagg, ttft_ms")
def pooled_first_token_ns(
    prompt_ns: Numeric,
    busy_frac: Numeric,
    users_prompts_ns: Numeric,
    transfer_ns: Numeric,
    prompt_ratio: Numeric,
    burst_frac: Numeric,
    start_ns: Numeric,
) -> Numeric:
    """Wait for the first token where prompts are computed by a pool of their own, unless the pool is the bottleneck.

    Args:
        prompt_ns: Time of one prompt. [ns], > 0
        busy_frac: Share of the pool's capacity in use. [1], 0 to below 1
        users_prompts_ns: Time in which the pool computes one prompt of every user. [ns], > 0
        transfer_ns: Hand-over of the cache to the decode pool. [ns], >= 0
        prompt_ratio: Own prompt as experienced over `prompt_ns`. [1], >= 0
        burst_frac: Share of all users' prompts waited for. [1], 0 to 1
        start_ns: Request handling and routing. [ns], >= 0

    Returns:
        Wait. [ns]

    Source:
        pollaczek-1930: mean wait of a queue with constant service is half of rho / (1 - rho) services.

    >>> pooled_first_token_ns(10.0, 0.5, 100.0, 2.0, 1.0, 0.1, 3.0)
    30.0
    """
    queued = 1.0 + 0.5 * busy_frac / (1.0 - busy_frac)
    return prompt_ratio * prompt_ns * queued + burst_frac * users_prompts_ns + transfer_ns + start_ns
