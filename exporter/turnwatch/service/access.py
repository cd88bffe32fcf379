"""Who may send: a bearer token, compared in constant time and never shown."""

from __future__ import annotations

import hmac
import re
from pathlib import Path

from turnwatch.errors import SettingsError
from turnwatch.settings import TOKEN


def authorizes(header: str | None, token: str | None) -> bool:
    """Whether an Authorization header carries the token. No token: everybody may send."""
    if token is None:
        return True
    scheme, _, given = (header or "").partition(" ")
    is_right = hmac.compare_digest(given.strip().encode("utf-8", "replace"), token.encode())
    return is_right and scheme.lower() == "bearer"


def token_of_file(path: Path) -> str:
    """The token that a file holds, white space round it dropped.

    Raises:
        SettingsError: it cannot be read, holds nothing, or something that never matches over HTTP.
    """
    try:
        token = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingsError(f"{path}: the token cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: the token cannot be read: it is no text") from None
    if not token:
        raise SettingsError(f"{path}: holds no token")
    if re.fullmatch(TOKEN, token) is None:
        raise SettingsError(f"{path}: the token wants printable ASCII characters, since headers carry nothing else")
    return token
