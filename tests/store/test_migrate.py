"""Whose database it is, which revision it has, and how it moves between revisions."""

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa
from numpy.testing import assert_array_equal

from codesign.errors import StoreError
from codesign.store import fingerprint, migrate
from codesign.store.database import Database
from codesign.store.repository import Store
from codesign.store.sweeps import SweepStore
from codesign.store.tables import metadata
from codesign.study.run import run_study
from tests.store.backends import optuna_storage, sqlite_file
from tests.study import toy

SERIALS = (
    ("studies", "study_id"),
    ("trials", "trial_id"),
    ("trial_params", "param_id"),
    ("trial_values", "trial_value_id"),
    ("trial_system_attributes", "trial_system_attribute_id"),
    ("trial_user_attributes", "trial_user_attribute_id"),
    ("codesign_study", "study_id"),
    ("codesign_sweep", "sweep_id"),
    ("codesign_event", "event_id"),
)


def test_there_is_one_head_and_the_code_knows_it() -> None:
    assert migrate.script_directory().get_heads() == [migrate.HEAD]


def test_optunas_tables_are_those_we_write() -> None:
    assert fingerprint.differences() == []


def test_a_changed_table_of_optuna_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = {t: dict(c) for t, c in fingerprint.EXPECTED.items()}
    changed["trials"]["priority"] = "INTEGER"
    monkeypatch.setattr(fingerprint, "EXPECTED", changed)

    with pytest.raises(StoreError, match=r"missing trials\.priority INTEGER"):
        fingerprint.check_optuna_tables()


def test_migrations_and_tables_agree(empty: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    migrate.upgrade(empty)
    database = Database(empty)
    with database.read() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "version_table": "codesign_alembic_version",
                "include_name": lambda n, t, _: t != "table" or n.startswith("codesign_"),
            },
        )
        found = compare_metadata(context, metadata)
    database.close()

    assert found == []


def test_up_down_and_up_again_leaves_optunas_tables_alone(empty: str) -> None:
    import optuna

    migrate.upgrade(empty)
    migrate.downgrade(empty, "base")
    assert migrate.current(empty).ours is None
    migrate.upgrade(empty)

    assert migrate.current(empty) == migrate.Revisions("0003", "0003", "v3.2.0.a")
    study = optuna.create_study(storage=optuna_storage(empty))
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=2)
    assert len(study.trials) == 2


@pytest.mark.parametrize("revision", ["0001", "0002"])
def test_down_and_up_again_keeps_the_trials_and_the_study_goes_on(revision: str, storage: str) -> None:
    run_study(toy.recipe(), storage, trials_total=16)
    migrate.downgrade(storage, revision)
    assert migrate.current(storage).ours == revision

    summary = run_study(toy.recipe(), storage, trials_total=32)

    assert summary.trials_count == 32
    assert migrate.current(storage).ours == "0003"


def test_a_database_that_the_revision_before_wrote_is_read_and_goes_on(empty: str, tmp_path: Path) -> None:
    """Rows as the code of revision 0002 wrote them, in tables as its migrations made them."""
    recipe = toy.recipe(sampler="sobol", batch_count=4, baselines=toy.BASELINES)
    rows = Path(__file__).with_name("written_by_0002.sql").read_text().splitlines()[1:]
    migrate.upgrade(empty)
    migrate.downgrade(empty, "0002")
    database = Database(empty)
    with database.write() as connection:
        for row in rows:
            connection.exec_driver_sql(row.replace("%", "%%") if not database.is_sqlite else row)
        for table, key in () if database.is_sqlite else SERIALS:
            top = f"(SELECT COALESCE(MAX({key}), 1) FROM {table})"
            connection.exec_driver_sql(f"SELECT setval(pg_get_serial_sequence('{table}', '{key}'), {top})")
    database.close()

    with Store(empty) as store:
        before, study = store.columns(store.study("toy")), store.study("toy")
        assert study.fidelity == SweepStore(store).get("screen").fidelity == "model"
        assert store.tombstones(study) == {3: "wrong price"}
        assert [e.fidelity for e in store.evaluations(study)] == ["model"] * 10
    summary = run_study(recipe, empty, trials_total=24)
    whole = sqlite_file(tmp_path, "whole")
    run_study(recipe, whole, trials_total=24)

    assert summary.trials_count == 24
    with Store(empty) as store, Store(whole) as other:
        after, fresh = store.columns(store.study("toy")), other.columns(other.study("toy"))
    assert_array_equal(before.values, after.values[:10])
    assert_array_equal(after.internal, fresh.internal)
    assert_array_equal(after.values, fresh.values)


def test_a_newer_database_is_refused(storage: str) -> None:
    migrate.upgrade(storage)
    database = Database(storage)
    with database.write() as connection:
        connection.execute(sa.text("UPDATE codesign_alembic_version SET version_num = '0099'"))
    database.close()

    with pytest.raises(StoreError, match="newer version of codesign"):
        Store(storage)


def test_another_applications_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE experiments (id INTEGER)")
    before = path.read_bytes()

    with pytest.raises(StoreError, match="belongs to another application"):
        Store(f"sqlite:///{path}")

    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("experiments",)]
    assert len(before) == len(path.read_bytes())


@pytest.mark.parametrize("count", [1, 2, 3, 7, 11, 12])
def test_a_creation_cut_short_is_finished(count: int, tmp_path: Path) -> None:
    """A kill or a full disk may end it after any table."""
    from optuna.storages._rdb.models import BaseModel

    url = f"sqlite:///{tmp_path}/s.db"
    engine = sa.create_engine(url)
    BaseModel.metadata.create_all(engine, tables=BaseModel.metadata.sorted_tables[:count])
    engine.dispose()

    assert run_study(toy.recipe(), url, trials_total=16).trials_count == 16


@pytest.mark.parametrize("table", ["studies (id INTEGER)", "trials (study_id INTEGER, study_name TEXT)"])
def test_a_table_of_optunas_name_alone_does_not_make_a_database_ours(table: str, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE {table}")
    connection.close()

    with pytest.raises(StoreError, match="belongs to another application"):
        Store(f"sqlite:///{path}")


def test_an_optuna_database_is_welcome(empty: str) -> None:
    import optuna

    optuna.create_study(storage=optuna_storage(empty), study_name="theirs")

    assert run_study(toy.recipe(), empty, trials_total=16).trials_count == 16
    assert "theirs" in optuna.get_all_study_names(optuna_storage(empty))


def test_names_taken_by_plain_optuna_are_refused(empty: str) -> None:
    import optuna

    from codesign.errors import StudyError

    optuna.create_study(storage=optuna_storage(empty), study_name="toy")

    with pytest.raises(StudyError, match="already exists"):
        run_study(toy.recipe(), empty, trials_total=16)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://root@localhost/x", "not supported"),
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("://", "not an address"),
        ("postgresql://nobody@127.0.0.1:1/none", "does not answer"),
        ("sqlite:////nonexistent/folder/x.db", "cannot be opened"),
    ],
)
def test_an_address_that_cannot_work_is_explained(url: str, words: str) -> None:
    with pytest.raises(StoreError, match=words):
        Store(url)


def test_a_file_that_is_no_database_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are notes, not a database" * 100)

    with pytest.raises(StoreError, match="not a SQLite database"):
        Store(f"sqlite:///{path}")
