"""CODESIGN_* environment variables and their defaults."""

from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Everything the environment may decide; command-line options win over it."""

    model_config = SettingsConfigDict(env_prefix="CODESIGN_", extra="ignore")

    storage: str = "sqlite:///codesign.db"
    executor: str = "ray"
    address: str = "local"
    workers: int = 0
