"""``codesign space list|check``."""

from typing import Annotated, Any

import typer

from codesign.cli.output import Json, print_json, show

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_spaces(as_json: Json = False) -> None:
    """Shipped search spaces; their names work wherever a path does."""
    from codesign.space import load_space, shipped_spaces

    rows = [{"name": name, "question": load_space(name).question} for name in shipped_spaces()]
    if as_json:
        print_json(rows)
        return
    from codesign.views.explain import rows_table

    show(rows_table("", rows))


@app.command()
def check(
    file: Annotated[str, typer.Argument(help="A space or design file, or the name of a shipped one.")],
    samples: Annotated[int, typer.Option(help="Uniform samples to evaluate.", min=1, max=100_000)] = 200,
    as_json: Json = False,
) -> None:
    """Check a file, then say what share of uniform samples can be built and which rules bind; of a design, whether."""
    from codesign.views.designs import question

    asked = question(file)
    if not asked.space.vary:
        _design(asked.evaluated().details(0), asked.space.name, as_json)
        return
    from codesign.study.feasibility import sample_feasibility

    report = sample_feasibility(file, samples)
    if as_json:
        print_json(report)
        return
    from codesign.views.explain import refusals_table

    as_asked, repaired = 100 * report["feasible_as_asked_frac"], 100 * report["feasible_frac"]
    show(f"{report['space']}: sound. {report['parameters']} parameters vary; of {report['samples']} uniform samples "
         f"{as_asked:.1f} % can be built as asked, {repaired:.1f} % keep every rule after repair.")  # fmt: skip
    show(refusals_table(report["refusals_as_asked"], "physical rules that samples break as asked", "samples"))
    show(refusals_table(report["refusals"], "why samples were refused (after repair)", "samples"))


def _design(found: dict[str, Any], name: str, as_json: bool) -> None:
    """A file without anything to vary: one design, which can be built or breaks rules."""
    if as_json:
        print_json({"space": name, "parameters": 0, "feasible": found["feasible"], "violations": found["violations"]})
        return
    broken = ", ".join(one["rule"] for one in found["violations"])
    says = f"cannot be built as it is: it breaks {broken}" if broken else "keeps every rule"
    show(f"{name}: sound. Nothing varies: a design for `codesign evaluate`, which {says}.")
