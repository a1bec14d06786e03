"""A small copy of a study in Optuna's tables, for tools that cannot show tens of thousands of trials."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from codesign.errors import StudyError
from codesign.store import trials
from codesign.store.repository import Store, StudyRecord
from codesign.store.trials import ParameterColumn, TrialColumns


def write_review(
    store: Store,
    study: StudyRecord,
    name: str,
    columns: Sequence[ParameterColumn],
    found: TrialColumns,
    chosen: NDArray[np.intp],
    attributes: Mapping[int, Mapping[str, str]],
) -> int:
    """Write chosen trials as a study of their own, in place of an older copy; Optuna's id of the study.

    Args:
        store: The database.
        study: The study they come from.
        name: Name of the copy; never that of a study of ours.
        columns: Parameters as Optuna describes them.
        found: All trials of the study.
        chosen: Places of the trials to copy.
        attributes: User attributes by place in the copy, each value a JSON text.
    """
    if store.has_study(name):
        raise StudyError(f"{name!r} is a study, not a copy of one; give the copy another name")
    database = store.database
    with store.transaction() as connection:
        old = trials.optuna_study_id(database, connection, name)
        if old is not None:
            trials.delete_optuna_study(database, connection, old)
        optuna_id = trials.create_optuna_study(database, connection, name, study.objectives, study.rules)
        trials.lock_study(database, connection, optuna_id)
        trials.insert_running(database, connection, optuna_id, columns, found.internal[chosen])
        values, constraints = found.values[chosen], found.constraints[chosen]
        trials.finish(database, connection, optuna_id, 0, values, constraints, (), attributes)
    return optuna_id
