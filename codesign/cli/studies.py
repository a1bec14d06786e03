"""``codesign study run|list|show|best|pareto|export|...``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from codesign.cli.output import Json, Storage, print_json, show, storage_url
from codesign.errors import InfeasibleError

app = typer.Typer(no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="Name of a study in the database.")]


@app.command()
def run(
    space: Annotated[str, typer.Argument(help="A space file, a shipped space, or a study of the database.")],
    name: Annotated[str | None, typer.Option("--study", help="Name of the study; default: the space's name.")] = None,
    trials: Annotated[
        int | None, typer.Option(help="Total number of trials; default: what the space says.", min=1)
    ] = None,
    extend: Annotated[int | None, typer.Option(help="So many more than the total the study aims at.", min=1)] = None,
    executor: Annotated[str | None, typer.Option(help="ray or inline; the answer is the same bit for bit.")] = None,
    workers: Annotated[int | None, typer.Option(help="Ray actors; default: one per core.", min=1)] = None,
    address: Annotated[str | None, typer.Option(help="Ray cluster: local, auto or HOST:PORT.")] = None,
    time_limit_s: Annotated[
        float | None, typer.Option(help="Ask no new batch once this run has lasted so many seconds.")
    ] = None,
    patience: Annotated[
        int | None, typer.Option(help="Stop after so many batches of the study without a better best or front.")
    ] = None,
    worker_hours: Annotated[
        float | None,
        typer.Option(help="Ask no new batch once all runs of the study spent this: workers x hours with a batch out."),
    ] = None,
    storage: Storage = None,
    as_json: Json = False,
) -> int:
    """Search a space for the best design, or continue towards its total; every trial is kept."""
    from codesign.cli.progress import progress
    from codesign.settings import Settings
    from codesign.study.study import Study

    settings = Settings()
    url = storage_url(storage)
    study = Study.continued(space, url) if name is None else Study.create(space, url, name=name, exist_ok=True)
    with progress(study.objective_names, quiet=as_json) as report:
        study.run(
            trials=trials,
            extend=extend,
            executor=executor or settings.executor,
            workers=workers or settings.workers,
            address=address or settings.address,
            time_limit_s=time_limit_s,
            patience=patience,
            worker_hours=worker_hours,
            on_progress=report,
        )
    return _answer(study, as_json)


def _answer(study: Any, as_json: bool) -> int:
    """Print the answer; the exit code says whether there is a design that obeys every rule."""
    summary = study.summary()
    if as_json:
        print_json(summary)
    else:
        from codesign.views.answer import answer

        show(answer(summary))
    return 0 if summary["best"] is not None else InfeasibleError.exit_code


def _open(name: str, storage: str | None) -> Any:
    from codesign.study.study import Study

    return Study.open(name, storage=storage_url(storage))


@app.command("list")
def list_studies(storage: Storage = None, as_json: Json = False) -> None:
    """Studies of the database."""
    from codesign.study.study import list_studies as listed

    rows = listed(storage_url(storage))
    if as_json:
        print_json(rows)
        return
    from codesign.views.explain import rows_table

    show(rows_table("", rows) if rows else "no studies yet; try: codesign study run quickstart")


@app.command("show")
def show_trial(
    name: Name,
    trial: Annotated[int | None, typer.Option(help="One trial instead of the study.")] = None,
    storage: Storage = None,
    as_json: Json = False,
) -> None:
    """A study's record and state, or one trial in full."""
    study = _open(name, storage)
    found = study.record() if trial is None else study.trial(trial)
    if as_json:
        print_json(found)
        return
    from codesign.views.explain import rows_table, single

    if trial is None:
        show(rows_table(name, [{"key": key, "value": str(value)} for key, value in found.items()]))
    else:
        show(single(found))


@app.command()
def best(name: Name, storage: Storage = None, as_json: Json = False) -> int:
    """The best design beside the best baseline, explained."""
    return _answer(_open(name, storage), as_json)


@app.command()
def pareto(name: Name, storage: Storage = None, as_json: Json = False) -> int:
    """Trials that no other trial beats in every objective."""
    rows = _open(name, storage).pareto()
    if as_json:
        print_json(rows)
    else:
        from codesign.views.explain import rows_table

        show(rows_table(f"Pareto set of {name}", rows) if rows else "nothing feasible yet")
    return 0 if rows else InfeasibleError.exit_code


@app.command()
def export(
    name: Name,
    out: Annotated[Path, typer.Argument(help="File to write: .csv, .json or .parquet.")],
    storage: Storage = None,
    as_json: Json = False,
) -> None:
    """Every trial as columns: parameters as asked and as repaired, values, constraints, details."""
    count = _open(name, storage).export(out)
    _done(as_json, f"{count} trials written to {out}", study=name, trials=count, file=str(out))


@app.command("import")
def import_study(
    file: Annotated[Path, typer.Argument(help="An exported .json or .parquet.")],
    name: Annotated[str | None, typer.Option("--study", help="Name in the database; default: as exported.")] = None,
    storage: Storage = None,
    as_json: Json = False,
) -> None:
    """Bring an exported study into the database."""
    from codesign.study.study import import_trials

    found = import_trials(file, storage_url(storage), name)
    _done(as_json, f"{file} is now study {found}; next: codesign study best {found}", study=found, file=str(file))


@app.command()
def copy(
    name: Name,
    new_name: Annotated[str, typer.Argument(help="Name of the copy.")],
    rebase: Annotated[
        bool, typer.Option("--rebase", help="Evaluate its designs again with this code and catalog.")
    ] = False,
    storage: Storage = None,
    as_json: Json = False,
) -> None:
    """Copy a study; with --rebase its designs become the first trials of a study under this code and catalog."""
    count = _open(name, storage).copy(new_name, rebase=rebase)
    said = f"{new_name}: {count} designs will be its first trials; next: codesign study run {new_name}"
    _done(as_json, said, study=new_name, first_trials=count)


@app.command()
def stop(
    name: Name,
    verb: Annotated[str, typer.Option(help="pause, stop or cancel.")] = "stop",
    storage: Storage = None,
    as_json: Json = False,
) -> None:
    """Ask a running study to pause (keep its place), stop (finish the batch) or cancel (drop the batch)."""
    said = _open(name, storage).request(verb)
    _done(as_json, f"{name}: {said}", study=name, verb=verb, state=said)


@app.command()
def tombstone(
    name: Name,
    trial: Annotated[int, typer.Option(help="Number of the trial.", min=0)],
    reason: Annotated[str, typer.Option(help="Why it no longer counts.")],
    storage: Storage = None,
    as_json: Json = False,
) -> None:
    """Take a finished trial out of every answer; it stays readable, and the search itself goes on as it was."""
    _open(name, storage).tombstone(trial, reason)
    _done(as_json, f"{name}: trial {trial} no longer counts: {reason}", study=name, trial=trial, reason=reason)


def _done(as_json: bool, said: str, **facts: Any) -> None:
    if as_json:
        print_json(facts)
    else:
        show(said)
