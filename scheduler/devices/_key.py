"""Shared keys of authenticated device links: where they are read from, and how one is made.

A key is 32 bytes, written as 64 hexadecimal digits in a file or an environment variable. No
message contains any part of it.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import re
import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import DeviceError
from ._options import Option

KEY_OPTION = Option("text", "shared key: file:NAME or env:NAME; frames are authenticated then")
_DIGITS = 64


def read_key(given: str, folder: Path) -> bytes:
    """Return the 32 bytes that ``file:NAME`` (relative to `folder`) or ``env:NAME`` stands for.

    Raises
    ------
    DeviceError
        If there is no such key, or others may read its file.
    """
    kind, _, name = given.partition(":")
    if re.fullmatch(rf"\s*[0-9a-fA-F]{{{_DIGITS}}}\s*", name):
        name = ""  # the key itself, which no message may show
    if kind == "file" and name:
        return _parse(_read_file(folder / Path(name).expanduser()), f"`{name}`")
    if kind == "env" and name:
        if name not in os.environ:
            raise DeviceError(
                f"there is no environment variable `{name}`: it must contain the key, as 64 "
                f"hexadecimal digits."
            )
        return _parse(os.environ[name], f"the environment variable `{name}`")
    raise DeviceError(
        'key must be "file:NAME" or "env:NAME", and not the key itself: `biella key rig.key` makes '
        'a file for key = "file:rig.key".'
    )


def _read_file(path: Path) -> str:
    try:
        with path.open(encoding="ascii") as file:
            mode = os.fstat(file.fileno()).st_mode  # of what is read: the name may change meanwhile
            text = file.read()
    except FileNotFoundError:
        raise DeviceError(
            f"there is no key file `{path}`: copy that of the device, or make one: biella key "
            f"{path}"
        ) from None
    except OSError as error:
        raise DeviceError(f"the key file `{path}` cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise DeviceError(f"`{path}` is not a key: it must be 64 hexadecimal digits.") from None
    require_private(path, mode)
    return text


def require_private(path: Path, mode: int) -> None:
    """Raise DeviceError if every user may use a file of this mode, which holds a secret."""
    if os.name == "posix" and mode & 0o007:
        raise DeviceError(
            f"every user of this machine has access to the key file `{path}`: chmod 600 {path}; if "
            f"others have read it, make another key."
        )


def _parse(text: str, place: str) -> bytes:
    digits = text.strip()
    if not re.fullmatch(r"[0-9a-fA-F]*", digits) or len(digits) != _DIGITS:
        raise DeviceError(
            f"{place} is not a key: it must be 64 hexadecimal digits (32 bytes), and has "
            f"{len(digits)} characters. Make one: biella key rig.key"
        )
    return bytes.fromhex(digits)


def check_key(options: Mapping[str, Any], folder: Path) -> list[tuple[str, str]]:
    """Return what is wrong with the option `key`, as (key, text)."""
    if options.get("key") is None:
        return []
    try:
        read_key(options["key"], folder)
    except DeviceError as error:
        return [("key", str(error))]
    return []


def reaches_network(options: Mapping[str, Any]) -> str:
    """Return the address of a socket's options that is not of this machine alone; or nothing."""
    for key in ("bind", "host"):
        if options[key] and not _is_loopback(options[key]):
            return str(options[key])
    return ""


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(address, None)
    except OSError:
        return False
    return all(_is_loopback(str(entry[4][0])) for entry in found)


def make_key(options: argparse.Namespace) -> None:
    """Write a random key to a new file; with `header`, also as C for a board."""
    key = secrets.token_bytes(_DIGITS // 2)
    _write_new(Path(options.file), key.hex() + "\n")
    text = f"{options.file}: a new key, for this user only"
    if options.header:
        items = ", ".join(f"0x{byte:02x}" for byte in key)
        try:
            _write_new(Path(options.header), f"#define BIELLA_KEY {{{items}}}\n")
        except BaseException:
            Path(options.file).unlink()
            raise
        text += f"; the same for a board: {options.header}"
    print(f'{text}. In rig.toml: key = "file:{options.file}"')


def _write_new(path: Path, text: str) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise DeviceError(
            f"`{path}` exists already, and devices may have this key: choose another name, or "
            f"delete it first."
        ) from None
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(text)
