"""Addresses on the web that text may be sent to."""

from __future__ import annotations

from urllib.parse import urlsplit

from seqmix.errors import ConfigError


def origin(url: str) -> str:
    """Return the scheme, host and port of an address; refuse one that is none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    plain = url.isascii() and url.isprintable() and " " not in url and len(url) <= 500
    odd = parts.username or parts.password or parts.query or parts.fragment
    if parts.scheme not in ("http", "https") or not parts.hostname or odd or not plain:
        raise ConfigError(
            "an address must look like https://api.example.com/v1, without a password"
            + ("" if "@" in url else f"; got {url[:80]!r}")
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}"
