"""CODESIGN_* environment variables and their defaults."""

from typing import Any

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from codesign.complaints import refusal
from codesign.errors import UsageError


class Settings(BaseSettings):
    """Everything the environment may decide; command-line options win over it."""

    model_config = SettingsConfigDict(env_prefix="CODESIGN_", extra="ignore")

    storage: str = "sqlite:///codesign.db"
    executor: str = "ray"
    address: str = "local"
    workers: int = Field(default=0, ge=0)

    def __init__(self, **given: Any) -> None:
        """Read the environment.

        Raises:
            UsageError: a variable has a value that it cannot have; the message names it.
        """
        try:
            super().__init__(**given)
        except ValidationError as error:
            prefix = self.model_config.get("env_prefix", "")
            said = [f"{prefix}{str(one['loc'][0]).upper()}: {refusal(one)}" for one in error.errors()]
            raise UsageError("\n".join(said)) from None
