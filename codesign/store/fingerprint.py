"""What we believe Optuna's tables look like: `store/trials.py` writes them directly, so a change must be seen."""

from codesign.errors import StoreError
from codesign.store.trials import optuna_columns

#: table -> column -> type, whether it may be empty.
EXPECTED: dict[str, dict[str, str]] = {
    "studies": {"study_id": "INTEGER not null", "study_name": "VARCHAR(512) not null"},
    "study_directions": {
        "study_direction_id": "INTEGER not null",
        "direction": "VARCHAR(8) not null",
        "study_id": "INTEGER not null",
        "objective": "INTEGER not null",
    },
    "study_user_attributes": {
        "study_user_attribute_id": "INTEGER not null",
        "study_id": "INTEGER",
        "key": "VARCHAR(512)",
        "value_json": "TEXT",
    },
    "study_system_attributes": {
        "study_system_attribute_id": "INTEGER not null",
        "study_id": "INTEGER",
        "key": "VARCHAR(512)",
        "value_json": "TEXT",
    },
    "trials": {
        "trial_id": "INTEGER not null",
        "number": "INTEGER",
        "study_id": "INTEGER",
        "state": "VARCHAR(8) not null",
        "datetime_start": "DATETIME",
        "datetime_complete": "DATETIME",
    },
    "trial_user_attributes": {
        "trial_user_attribute_id": "INTEGER not null",
        "trial_id": "INTEGER",
        "key": "VARCHAR(512)",
        "value_json": "TEXT",
    },
    "trial_system_attributes": {
        "trial_system_attribute_id": "INTEGER not null",
        "trial_id": "INTEGER",
        "key": "VARCHAR(512)",
        "value_json": "TEXT",
    },
    "trial_params": {
        "param_id": "INTEGER not null",
        "trial_id": "INTEGER",
        "param_name": "VARCHAR(512)",
        "param_value": "FLOAT",
        "distribution_json": "TEXT",
    },
    "trial_values": {
        "trial_value_id": "INTEGER not null",
        "trial_id": "INTEGER not null",
        "objective": "INTEGER not null",
        "value": "FLOAT",
        "value_type": "VARCHAR(7) not null",
    },
    "trial_intermediate_values": {
        "trial_intermediate_value_id": "INTEGER not null",
        "trial_id": "INTEGER not null",
        "step": "INTEGER not null",
        "intermediate_value": "FLOAT",
        "intermediate_value_type": "VARCHAR(7) not null",
    },
    "trial_heartbeats": {
        "trial_heartbeat_id": "INTEGER not null",
        "trial_id": "INTEGER not null",
        "heartbeat": "DATETIME not null",
    },
    "version_info": {
        "version_info_id": "INTEGER not null",
        "schema_version": "INTEGER",
        "library_version": "VARCHAR(256)",
    },
}


def differences() -> list[str]:
    """What the installed Optuna's tables have that we do not expect, and the other way round."""
    found = optuna_columns()
    expected = {(t, c, kind) for t, columns in EXPECTED.items() for c, kind in columns.items()}
    actual = {(t, c, kind) for t, columns in found.items() for c, kind in columns.items()}
    gone = [f"missing {t}.{c} {kind}" for t, c, kind in sorted(expected - actual)]
    return gone + [f"unexpected {t}.{c} {kind}" for t, c, kind in sorted(actual - expected)]


def check_optuna_tables() -> None:
    """Refuse to write tables that changed under us.

    Raises:
        StoreError: the installed Optuna is not the one this code was made for.
    """
    found = differences()
    if found:
        raise StoreError(f"the installed Optuna has other tables than this version writes: {'; '.join(found)}")
