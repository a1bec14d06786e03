"""The command line: parse and print, no arithmetic. Heavy modules load inside the command that needs them."""

import contextlib
import sys
import tempfile
import traceback
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from codesign.cli import catalog, data, designs, spaces, studies, sweeps
from codesign.complaints import refusal
from codesign.errors import CodesignError, UsageError

app = typer.Typer(
    name="codesign",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: rich alone takes longer to load than everything else here
    help="From SerDes, protocol, buffers and memory to the cost of a token.",
)
app.add_typer(studies.app, name="study", help="Search a space and review what was found.")
app.add_typer(spaces.app, name="space", help="List and check search spaces.")
app.add_typer(catalog.app, name="catalog", help="The facts the model reads, each with its source.")
app.add_typer(sweeps.app, name="sweep", help="Screen millions of candidates without a sampler.")
app.add_typer(data.app, name="db", help="The database.")
designs.register(app)
data.register(app)

INTERRUPTED = 130
BUG = 70


def run(arguments: Sequence[str]) -> int:
    """Run one command and return the process exit code (docs/cli.md lists them)."""
    as_json = "--json" in arguments
    try:
        code = app(list(arguments), standalone_mode=False)
    except CodesignError as error:
        return _complain(str(error), error.exit_code, type(error).__name__, as_json)
    except TyperException as error:
        return _misused(error, as_json)
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted(as_json)
    except BrokenPipeError:
        with contextlib.suppress(OSError):
            sys.stdout.close()
        return 0
    except Exception:
        with tempfile.NamedTemporaryFile("w", prefix="codesign-bug-", suffix=".txt", delete=False) as report:
            traceback.print_exc(file=report)
        said = f"this is a bug in codesign; what happened is in {report.name}: please report it with that file"
        return _complain(said, BUG, "Bug", as_json)
    if code == INTERRUPTED:  # typer turns the interrupt into this code and says nothing
        return _interrupted(as_json)
    return code if isinstance(code, int) else 0


def _misused(error: TyperException, as_json: bool) -> int:
    """Say what is wrong with the command line, without the words of the library that checks values."""
    code = int(getattr(error, "exit_code", UsageError.exit_code))
    refused = getattr(error.__cause__, "errors", None)  # of a schema, where a value was refused by one
    if refused is not None:
        error.message = refusal(refused()[0])
    if as_json:
        return _complain(error.format_message() or "no command given", code, "UsageError", as_json)
    if hasattr(error, "show"):
        error.show()
    return code


def _interrupted(as_json: bool) -> int:
    return _complain("interrupted; finished trials are kept", INTERRUPTED, "Interrupted", as_json)


def _complain(message: str, code: int, kind: str, as_json: bool) -> int:
    if as_json:
        from codesign.jsons import dump

        print(dump({"error": {"kind": kind, "message": message, "exit_code": code}}))
    else:
        print(f"error: {message}", file=sys.stderr)
    return code
