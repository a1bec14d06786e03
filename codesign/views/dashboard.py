"""optuna-dashboard over our loader, and the review study that keeps it quick however long a study is.

The dashboard sends every trial to the browser, so it is shown a copy of at most 1,500: the front, the baselines, the
best, and an even sample of the rest, with notes in words and three figures. Plain studies are listed beside it.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from codesign.metrics import has_value
from codesign.store.repository import EvaluationRecord, Store, StudyRecord, strict_json
from codesign.store.review import write_review
from codesign.store.trials import ParameterColumn, TrialColumns, cached_storage
from codesign.study.fronts import excess, front
from codesign.study.parameters import from_json
from codesign.study.progress import baseline_numbers, counting
from codesign.study.search import distribution_json
from codesign.views.explain import shown

MOST = 1500
_NOTED = 8  # best trials that get a note of their own
Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def publish_review(storage_url: str, name: str, most: int = MOST) -> str:
    """Make or refresh the review study of a study; its name."""
    review = f"{name} (review)"
    with Store(storage_url, create=False) as store:
        study = store.study(name)
        columns, counts = counting(store, study)
        named = baseline_numbers(study, columns)
        chosen = choose(study, columns, counts, named, most)
        order = _best_first(study, columns, chosen)
        noted = [int(columns.numbers[i]) for i in order[:_NOTED]] + list(named)
        records = {e.number: e for e in store.evaluations(study, noted)}
        attributes = {
            place: {
                "trial": strict_json(int(columns.numbers[i])),
                **({"baseline": strict_json(named[n])} if (n := int(columns.numbers[i])) in named else {}),
            }
            for place, i in enumerate(chosen)
        }
        described = [ParameterColumn(n, distribution_json(p)) for n, p in from_json(study.parameters).items()]
        optuna_id = write_review(store, study, review, described, columns, chosen, attributes)
        url = store.database.url
    storage = cached_storage(url)
    try:
        _annotate(storage, optuna_id, review, study, columns, counts, chosen, order, named, records)
    finally:
        storage.remove_session()
        storage._backend.engine.dispose()
    return review


def choose(
    study: StudyRecord,
    columns: TrialColumns,
    counts: NDArray[np.bool_],
    named: Mapping[int, str],
    most: int,
) -> NDArray[np.intp]:
    """Places of the trials to show, oldest first: baselines, front, best, then an even sample of the rest."""
    places = np.flatnonzero(counts)
    if len(places) <= most:
        return places
    costs = _costs(study, columns)[places]
    kept = excess(columns.constraints[places]) <= 0.0
    on_front = places[kept][front(costs[kept])] if kept.any() else places[:0]
    best = _best_first(study, columns, places)[: most // 10]
    baselines = places[np.isin(columns.numbers[places], list(named))]
    sure = np.unique(np.concatenate([baselines, best, on_front[: most // 2]]))
    rest = np.setdiff1d(places, sure)
    sample = rest[np.linspace(0, len(rest) - 1, most - len(sure)).round().astype(np.intp)]
    return np.unique(np.concatenate([sure, sample]))


def application(storage_url: str, *, read_only: bool = True) -> Application:
    """The dashboard as a WSGI application over our fast loader.

    Args:
        storage_url: Where the studies are.
        read_only: Refuse everything that would change a study: the dashboard itself asks nobody who they are.
    """
    from optuna_dashboard import _app, wsgi

    from codesign.store.migrate import open_database

    database = open_database(storage_url, create=False)
    url = database.url
    database.close()
    theirs: Any = _app
    theirs.get_pareto_front_trials = feasible_front
    inner: Application = wsgi(cached_storage(url))
    return _reading_only(inner) if read_only else inner


def serve(storage_url: str, host: str = "127.0.0.1", port: int = 8080, *, read_only: bool = True) -> None:
    """Serve the dashboard until interrupted."""
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing per request."""

    with make_server(host, port, application(storage_url, read_only=read_only), handler_class=Quiet) as server:
        server.serve_forever()


def feasible_front(trials: Sequence[Any], directions: Sequence[Any]) -> list[Any]:
    """Front of the feasible trials: the dashboard's own ignores rules and compares every pair in Python."""
    done = [t for t in trials if t.state.name == "COMPLETE" and all(c <= 0.0 for c in t.constraints.values())]
    if not done:
        return []
    signs = np.array([-1.0 if d.name == "MAXIMIZE" else 1.0 for d in directions])
    kept = front(np.array([t.values for t in done]) * signs)
    return [trial for trial, on_front in zip(done, kept, strict=True) if on_front]


def _reading_only(inner: Application) -> Application:
    def guarded(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ.get("REQUEST_METHOD") in ("GET", "HEAD", "OPTIONS"):
            return inner(environ, start_response)
        start_response("403 Forbidden", [("Content-Type", "application/json")])
        return [b'{"reason": "this dashboard only reads; change studies with codesign"}']

    return guarded


def _costs(study: StudyRecord, columns: TrialColumns) -> Any:
    return columns.values * np.array([1.0 if d == "minimize" else -1.0 for _, d in study.objectives])


def _best_first(study: StudyRecord, columns: TrialColumns, places: NDArray[np.intp]) -> NDArray[np.intp]:
    costs, violation = _costs(study, columns)[places, 0], excess(columns.constraints[places])
    return places[np.lexsort((places, costs, violation))]


def _annotate(
    storage: Any,
    optuna_id: int,
    review: str,
    study: StudyRecord,
    columns: TrialColumns,
    counts: NDArray[np.bool_],
    chosen: NDArray[np.intp],
    order: NDArray[np.intp],
    named: Mapping[int, str],
    records: Mapping[int, EvaluationRecord],
) -> None:
    """Notes on the study, its best and its baselines; figures."""
    import optuna
    from optuna_dashboard import save_plotly_graph_object
    from optuna_dashboard._note import save_note_with_version

    trial_ids = [t._trial_id for t in storage.get_all_trials(optuna_id, deepcopy=False)]
    place = {int(columns.numbers[i]): j for j, i in enumerate(chosen)}
    about = study_note(study, int(counts.sum()), len(chosen))
    save_note_with_version(storage, optuna_id, None, 1, about)
    for number, record in records.items():
        if number in place:
            body = trial_note(study, record, named.get(number))
            save_note_with_version(storage, optuna_id, trial_ids[place[number]], 1, body)
    opened = optuna.load_study(study_name=review, storage=storage)
    figures = {"front": front_figure(study, columns, chosen, named)}
    best = [records[n] for i in order[:1] if (n := int(columns.numbers[i])) in records]
    beside = [(named[n], records[n]) for n in named if n in records]
    compared = [*((f"best ({r.number})", r) for r in best), *beside]
    for title, key, label, amount in (("time", "waterfall", "part", "ms"), ("cost", "bill", "item", "usd_per_mtok")):
        figure = stack_figure(compared, key, label, amount)
        if figure is not None:
            figures[title] = figure
    for title, figure in figures.items():
        save_plotly_graph_object(opened, figure, graph_object_id=title)


def study_note(study: StudyRecord, trials_count: int, shown_count: int) -> str:
    """What a reader of the review study must know."""
    return "\n".join(
        [
            f"# {study.name}",
            f"Space **{study.space_name}**, state **{study.state}** ({study.reason}).",
            f"{trials_count} trials; this copy shows {shown_count}: baselines, front, best and an even sample.",
            f"Sampler `{study.sampler['name']}`, seed {study.seed}, batches of {study.batch_count}; "
            f"catalog `{study.catalog_digest}`, code `{study.code_version}`.",
            f"Rules, in the order of the constraints: {', '.join(study.rules)}.",
        ]
    )


def trial_note(study: StudyRecord, record: EvaluationRecord, name: str | None) -> str:
    """One trial in words and tables: design, what binds, bill, waterfall."""
    details = json.loads(record.details)
    lines = [f"# Trial {record.number} of {study.name}" + (f": {name}" if name else "")]
    lines += ["## Design", _table([{"parameter": k, "value": v} for k, v in json.loads(record.repaired).items()])]
    details["values"] = {metric: shown(metric, value) for metric, value in details.get("values", {}).items()}
    if isinstance(binds := details.get("binds"), Mapping):  # what binds is for the answer, which prices resources
        details["shares of time"] = binds.get("shares")
    for key in ("values", "shares of time", "bill", "repairs", "violations"):
        if details.get(key):
            lines += [f"## {key.capitalize()}", _markdown(details[key])]
    lines.append(f"What binds, watts among it: `codesign study show {study.name} --trial {record.number}`.")
    for waterfall_of, rows in _named_lists(details, "waterfall"):
        lines += [f"## Waterfall {waterfall_of}".rstrip(), _table(rows)]
    return "\n\n".join(lines)


def front_figure(
    study: StudyRecord, columns: TrialColumns, chosen: NDArray[np.intp], named: Mapping[int, str]
) -> go.Figure:
    """First against second objective, or the course of the only one; baselines by name."""
    metrics = [metric for metric, _ in study.objectives]
    real = [all(has_value(m, v) for m, v in zip(metrics, row, strict=True)) for row in columns.values[chosen].tolist()]
    chosen = chosen[np.flatnonzero(real)]  # what delivers nothing has no place in a figure of prices
    values, kept = columns.values[chosen], (columns.constraints[chosen] <= 0.0).all(axis=1)
    numbers = columns.numbers[chosen]
    two = len(metrics) > 1
    x, y = (values[:, 0], values[:, 1]) if two else (numbers, values[:, 0])
    figure = go.Figure()
    known = np.isin(numbers, list(named))
    for label, mask, opacity in (("feasible", kept & ~known, 0.7), ("breaks a rule", ~kept & ~known, 0.25)):
        figure.add_scatter(x=_short(x[mask]), y=_short(y[mask]), mode="markers", name=label, opacity=opacity)
    names = [named[int(n)] for n in numbers[known]]
    marker = {"size": 12, "symbol": "diamond"}
    figure.add_scatter(
        x=_short(x[known]), y=_short(y[known]), mode="markers+text", name="baselines", text=names, marker=marker
    )
    figure.update_layout(xaxis_title=metrics[0] if two else "trial", yaxis_title=metrics[1] if two else metrics[0])
    return figure


def stack_figure(
    compared: Sequence[tuple[str, EvaluationRecord]], key: str, label: str, amount: str
) -> go.Figure | None:
    """Stacked bars, one per design: parts of its time or of its cost. None where details hold no such parts."""
    parts: dict[str, dict[str, float]] = {}
    for name, record in compared:
        for where, rows in _named_lists(json.loads(record.details), key):
            for row in rows:
                if label in row and amount in row:
                    parts.setdefault(str(row[label]), {})[f"{name} {where}".strip()] = float(row[amount])
    if not parts:
        return None
    bars = list(dict.fromkeys(bar for part in parts.values() for bar in part))
    figure = go.Figure([go.Bar(name=part, x=bars, y=[heights.get(b) for b in bars]) for part, heights in parts.items()])
    figure.update_layout(barmode="stack", yaxis_title=amount)
    return figure


def _named_lists(details: Any, key: str, where: str = "") -> list[tuple[str, list[dict[str, Any]]]]:
    """Every list of records under ``key``, however deep, with the name of what it belongs to."""
    found: list[tuple[str, list[dict[str, Any]]]] = []
    if isinstance(details, Mapping):
        for name, value in details.items():
            if name == key and isinstance(value, list):
                found.append((where, value))
            elif name == key and isinstance(value, Mapping):
                found.append((where, [{"item": k, "value": v} for k, v in value.items()]))
            elif isinstance(value, Mapping):
                found += _named_lists(value, key, name if name != "workloads" else where)
    return found


def _markdown(value: Any) -> str:
    if isinstance(value, Mapping):
        return _table([{"": k, "value": _joined(v) if isinstance(v, Mapping) else v} for k, v in value.items()])
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return _table(value)
    return str(value)


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "none"
    heads = list(rows[0])
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return "\n".join([*lines, *(f"| {' | '.join(_cell(row.get(h)) for h in heads)} |" for row in rows)])


def _joined(value: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {_cell(part)}" for name, part in value.items())


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _short(column: Any) -> list[float]:
    return [float(f"{v:.5g}") for v in column.tolist()]
