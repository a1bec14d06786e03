"""A whole study written at once, as it was somewhere else: what an import needs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codesign.errors import StudyError
from codesign.store import tables, trials
from codesign.store.database import utc_now
from codesign.store.repository import EvaluationRecord, Store, StudyRecord
from codesign.store.trials import ParameterColumn, TrialColumns


def restore(
    store: Store,
    record: Mapping[str, Any],
    columns: Sequence[ParameterColumn],
    found: TrialColumns,
    batches: Sequence[Mapping[str, Any]],
    evaluations: Sequence[EvaluationRecord],
    actor: str,
    state: str,
) -> StudyRecord:
    """Create a study in this state with all its finished trials under their numbers.

    Raises:
        StudyError: the name is taken, the trials are not numbered from 0 on, or their values are of several fidelities.
    """
    if strange := {e.fidelity for e in evaluations} - {record["fidelity"]}:
        raise StudyError(f"values of fidelity {min(strange)!r} cannot stand beside values of {record['fidelity']!r}")
    if found.numbers.tolist() != list(range(len(found))):
        raise StudyError("the trials of an imported study must be numbered 0, 1, 2, ... without a gap")
    study = store.create_study(record, actor)
    lost = found.states != "COMPLETE"
    named = {e.number: e for e in evaluations}
    try:
        with store.transaction() as connection:
            database = store.database
            optuna_id = trials.optuna_study_id(database, connection, study.name)
            assert optuna_id is not None
            trials.lock_study(database, connection, optuna_id)
            if len(found):
                trials.insert_running(database, connection, optuna_id, columns, found.internal)
                failed = set(np.flatnonzero(lost).tolist())
                trials.finish(database, connection, optuna_id, 0, found.values, found.constraints, failed)
            for batch in batches:
                now = utc_now()
                row = {"state": "told", **batch, "run_id": "imported", "asked_at": now, "told_at": now}
                connection.execute(tables.batch.insert().values(study_id=study.study_id, **row))
            for number in sorted(named):
                entry = {key: getattr(named[number], key) for key in EvaluationRecord.__slots__}
                connection.execute(tables.evaluation.insert().values(study_id=study.study_id, **entry))
    except BaseException:
        store.delete_study(study.name)
        raise
    store.transition(study.name, state, actor, "imported")
    return store.study(study.name)
