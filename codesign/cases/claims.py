"""Published co-design claims whose inputs are only partly known, compared by sign, order or crossover.

Each claim is asked of the whole evaluation and answered with the numbers found. A claim that does not come out stands
in the table as a fail, with what was found instead.
"""

from collections.abc import Callable
from dataclasses import dataclass

from codesign.cases import claim_questions as questions
from codesign.cases.claim_questions import Answer
from codesign.catalog import Catalog


@dataclass(frozen=True)
class Claim:
    """One sentence somebody published, where, and how it is asked."""

    name: str
    text: str
    source: str
    ask: Callable[[Catalog], Answer]


def claim_rows(catalog: Catalog) -> list[dict[str, str]]:
    """Every claim with what is found: id, claim, source, found, verdict (pass or fail)."""
    out = []
    for claim in CLAIMS:
        answer = claim.ask(catalog)
        verdict = "pass" if answer.holds else "fail"
        out.append(
            {"id": claim.name, "claim": claim.text, "source": claim.source, "found": answer.found, "verdict": verdict}
        )
    return out


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "R4",
        "Dense training of 1T gains nothing from a scale-up domain of 64 over 8 at 450 GB/s",
        "Calculon runs",
        questions.dense_domain,
    ),
    Claim(
        "R6",
        "A second tier of 512 GB makes models trainable that the first tier cannot hold",
        "Calculon, SC23 poster (abstract)",
        questions.offload,
    ),
    Claim(
        "R14",
        "Wide expert parallelism serves up to 1.8 times more per accelerator on a rack of 72",
        "NVIDIA developer blog",
        questions.wide_experts,
    ),
    Claim(
        "R16a",
        "2,000 tokens/s and user are within easy reach",
        "LIMINAL, arXiv 2507.14397 (abstract)",
        questions.fast_users,
    ),
    Claim(
        "R16b",
        "10,000 tokens/s and user need other models",
        "LIMINAL, arXiv 2507.14397 (abstract)",
        questions.ten_thousand,
    ),
    Claim(
        "R16c",
        "Memory rate pays only where exposed synchronisation is about 1 us",
        "LIMINAL, arXiv 2507.14397 (abstract)",
        questions.synchronisation,
    ),
    Claim(
        "R17",
        "A flat optical network raises throughput and cuts cost of ownership by 20 to 30 %",
        "arXiv 2506.15006 (abstract)",
        questions.flat_network,
    ),
    Claim(
        "R18",
        "Eight times the scale-up domain trains MoE up to 2.7 times faster",
        "arXiv 2510.15893 (abstract)",
        questions.time_to_train,
    ),
    Claim(
        "R19",
        "A shared memory tier decodes 405B 1.4 to 3.7 times faster",
        "arXiv 2507.14000 (abstract)",
        questions.shared_memory,
    ),
    Claim(
        "R20a",
        "Leaving out the spine saves 38 to 77 % of network cost at no loss for dense training",
        "Rail-only, arXiv 2307.12169 (abstract)",
        questions.rail_only_cost,
    ),
    Claim(
        "R20b",
        "All-to-all over rails alone takes 8 to 11 % longer",
        "Rail-only, arXiv 2307.12169 (abstract)",
        questions.rail_only_exchange,
    ),
    Claim(
        "R21",
        "Spare links raise availability (by 7.2 % with one in 64)",
        "UB-Mesh, arXiv 2503.20377 (abstract)",
        questions.spare_lanes,
    ),
    Claim(
        "R22",
        "Utilisation rises with the high-bandwidth domain beyond eight",
        "InfiniteHBD, arXiv 2502.03885 (abstract)",
        questions.utilisation,
    ),
    Claim(
        "R23",
        "Optical circuit switches are below 5 % of system cost",
        "TPU v4, arXiv 2304.01433 (abstract)",
        questions.optical_switch_share,
    ),
    Claim(
        "R25",
        "Rented accelerators are far dearer per token than owned silicon",
        "Chiplet Cloud, arXiv 2307.02666 v4 (abstract)",
        questions.rented,
    ),
    Claim(
        "R26",
        "14 to 32 % of accelerator time is exposed communication",
        "MAD-Max, arXiv 2310.02784 (abstract)",
        questions.exposed,
    ),
    Claim(
        "R28",
        "Searching all layers together beats searching any one",
        "COSMIC, arXiv 2505.15020 (abstract)",
        questions.joint,
    ),
    Claim(
        "R32",
        "One design for several workloads pays a regret",
        "FAST, arXiv 2105.12842 (abstract)",
        questions.regret,
    ),
    Claim(
        "R33",
        "Separate prefill pays for large models with long prompts, not for small ones that generate",
        "arXiv 2506.05508, as reported",
        questions.disaggregated,
    ),
    Claim(
        "R34a",
        "More accelerators on one 70B job: fewer tokens per second and part, fewer per joule",
        "arXiv 2411.13055 (abstract)",
        questions.scale,
    ),
    Claim(
        "R34b",
        "At scale the cost of fully sharded data parallel makes model parallelism preferable",
        "arXiv 2411.13055 (abstract)",
        questions.model_parallel,
    ),
    Claim(
        "HBM",
        "1.5 times the memory at the same rate serves more than 1.2 times the tokens, cheaper",
        "InferenceX, GB300 over GB200",
        questions.capacity,
    ),
    Claim(
        "credits",
        "Goodput falls with the receive buffer below the credit loop, and not above it",
        "closed form: one round trip of buffer per full rate",
        questions.credit_loop,
    ),
    Claim(
        "headers",
        "Headers decide at 64 B and hardly matter at 4 KiB",
        "protocol comparison, two header sizes",
        questions.headers,
    ),
)
