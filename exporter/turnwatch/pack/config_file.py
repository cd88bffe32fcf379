"""The pack's configuration, read from the exporter's settings file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from turnwatch.errors import SettingsError
from turnwatch.pack.overlay import ConfigKeyError, apart_from_the_exporter, checked, overlay_of
from turnwatch.pack.render import default_config
from turnwatch.settings_file import load_settings
from turnwatch.yaml_file import read_yaml_file


def config_of(path: Path) -> dict[str, Any]:
    """Return the keys of ``_config`` that a settings file sets.

    The environment is left out: what is rendered depends on files only.

    Raises:
        MissingExtraError: The ``jsonnet`` package is missing.
        SettingsError: The file cannot be read, or has an unknown key or a value of the wrong kind. The message names
            key, file and line.
    """
    overlay = overlay_of(load_settings(env={}, path=path))
    try:
        return checked(overlay, default_config())
    except ConfigKeyError as error:
        raise SettingsError(f"{read_yaml_file(path).place(error.path)}: {error}") from None


def remarks_on(path: Path) -> list[str]:
    """Say what a settings file does that is allowed and hardly meant, one line each.

    Raises:
        SettingsError: As for ``config_of``.
    """
    return [f"{path}: {remark}" for remark in apart_from_the_exporter(load_settings(env={}, path=path))]
