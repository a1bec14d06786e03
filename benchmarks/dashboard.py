"""What a page costs: the dashboard over a study of 50,000 trials through its review. Run by hand, takes a minute.

    python benchmarks/dashboard.py [--trials 50000]

Prints CPU seconds of making the review of at most 1,500 trials, of the first page (the list of studies, then the trials
of the review) and of each later poll, which asks for what is new.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codesign.store.repository import Store
from codesign.study.run import run_study
from codesign.views.dashboard import MOST, application, publish_review
from tests.store.backends import sqlite_file
from tests.study import toy
from tests.views.browser import get

TWO: Any = (("cost_usd", "minimize"), ("rate_gbps", "maximize"))
POLLS = 10


def cpu_s(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of some work, and what it gave."""
    started = time.process_time()
    found = work()
    return time.process_time() - started, found


def asked(app: Any, path: str) -> Any:
    """What the dashboard answers to a browser."""
    return json.loads(get(app, path)[1])


def main() -> None:
    """Fill a study, look at it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=50_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = sqlite_file(Path(folder), "dashboard")
        recipe = toy.recipe(objectives=TWO, sampler="random", batch_count=512, baselines=toy.BASELINES)
        run_study(recipe, url, trials_total=options.trials)
        made_s, name = cpu_s(lambda: publish_review(url, "toy"))
        app = application(url)

        def first() -> Any:
            studies = {s["study_name"]: s["study_id"] for s in asked(app, "/api/studies")["study_summaries"]}
            return studies[name], asked(app, f"/api/studies/{studies[name]}?after=0")["trials"]

        page_s, (study_id, shown) = cpu_s(first)
        assert 0 < len(shown) <= MOST
        poll_s, _ = cpu_s(lambda: [asked(app, f"/api/studies/{study_id}?after={len(shown)}") for _ in range(POLLS)])
        with Store(url) as store:
            count = len(store.columns(store.study("toy")))
    print(f"review       {made_s:8.2f} s CPU, {len(shown)} of {count} trials")
    print(f"first page   {page_s:8.2f} s CPU")
    print(f"poll         {poll_s / POLLS:8.3f} s CPU")


if __name__ == "__main__":
    main()
