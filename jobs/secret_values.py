"""Which values of settings are shown, and how the others are kept out of messages.

A list names the keys that are harmless: whatever is not on it is hidden, as nobody can list the ways in which Spark,
Kafka's client and object stores are given credentials. What is hidden is remembered when the settings are read, and
taken out of each message: the errors of libraries repeat URLs and settings.
"""

import re
from typing import Final

HIDDEN: Final = "***"

FREE: Final = ("kafka.", "spark.conf.", "storage_options.")
"""Begins of settings whose further names are not this software's own."""

SECRET: Final = frozenset({"spark.remote"})
"""Settings of this software that may hold a token."""

HARMLESS: Final = re.compile(
    r"storage_options\.(aws_(region|endpoint(_url)?|default_region)|azure_storage_account_name|google_bucket)"
    r"|kafka\.(bootstrap\.servers|security\.protocol|sasl\.mechanisms?|sasl\.username|client\.id|group\.id|log_level"
    r"|ssl\.ca\.location|ssl\.endpoint\.identification\.algorithm|enable\.ssl\.certificate\.verification"
    r"|broker\.address\.family|([a-z]+\.)+(ms|bytes|kbytes|messages))"
    r"|spark\.conf\.spark\.((driver|executor)\.(memory|memoryOverhead|cores|instances|maxResultSize)|app\.name|log\.level"
    r"|ui\.enabled|ui\.showConsoleProgress|default\.parallelism|task\.cpus|speculation"
    r"|dynamicAllocation\.(enabled|minExecutors|maxExecutors)|jars|jars\.packages|sql\.extensions|sql\.warehouse\.dir"
    r"|sql\.shuffle\.partitions|sql\.session\.timeZone|sql\.ansi\.enabled|sql\.adaptive\.\w+(\.\w+)*"
    r"|sql\.codegen\.\w+|sql\.files\.\w+|sql\.execution\.arrow\.[\w.]+|sql\.autoBroadcastJoinThreshold"
    r"|sql\.catalog\.\w+|databricks\.delta\.[\w.]+)"
)
"""Free settings whose values are shown, unless they are named like a credential."""

CREDENTIAL: Final = re.compile(r"password|secret|token|credential|[._]key", re.IGNORECASE)

NAME: Final = re.compile(r"[A-Za-z][\w.\-]{0,99}")
"""What names of settings look like; anything else may be a value that was written in the wrong place."""

SHORTEST: Final = 4
"""Shorter values are no secrets, and messages have them for other reasons."""

PARAMETERS: Final = re.compile(r"(?<=[?;])[^\s'\"]+")
CREDENTIALS: Final = re.compile(rf"(?<=://)(?:[^/\s@:]*:\S*|[^/\s@]+)@|{PARAMETERS.pattern}")
"""What a URL has besides its place: a user and password before ``@``, parameters behind ``?`` or ``;``.

The secret keys of object stores may have slashes: behind a colon, all up to the last ``@`` is hidden.
"""

CONTAINER: Final = re.compile(r"(abfss?|wasbs?)://[^/\s@:]*@")
"""The names of containers on Azure stand where other URLs have a user."""

_REMEMBERED: set[str] = set()


def shown(name: str, value: object) -> object:
    """Return the value of a setting as it may be shown."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if _is_hidden(name):
        return HIDDEN
    if isinstance(value, str):
        return without_credentials(value)
    return [shown(name, part) for part in value] if isinstance(value, list) else value


def shown_name(name: str) -> str:
    """Return the name of a setting, or a part of it, as it may be shown."""
    return name if NAME.fullmatch(name) else HIDDEN


def remember(name: str, value: object) -> None:
    """Keep a value of a setting, or the credentials in it, out of all later messages of this process."""
    if isinstance(value, list):
        for part in value:
            remember(name, part)
    elif value is not None:
        text = str(value)
        secrets = {text} if _is_hidden(name) else set[str]()
        if "://" in text:
            secrets.update(secret.rstrip("@") for secret in _credentials(text).findall(text))
        _REMEMBERED.update(secret for secret in secrets if len(secret) >= SHORTEST)


def remember_url(url: str) -> None:
    """Keep what is behind the host of a URL out of all later messages: the path of a webhook is its password."""
    _, _, place = url.partition("://")
    host, slash, path = place.partition("/")
    # A path that is one word is hidden with its slash alone: messages have such words for other reasons.
    for secret in (f"/{path}" if slash else "", "" if path.isalpha() else path, host.rpartition("@")[0]):
        if len(secret) >= SHORTEST:
            _REMEMBERED.add(secret)


def redacted(text: str) -> str:
    """Return a message without the values that were remembered."""
    for secret in sorted(_REMEMBERED, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def without_credentials(text: str) -> str:
    """Return a text in which URLs have no credentials."""
    if "://" not in text:
        return text
    return _credentials(text).sub(lambda found: HIDDEN + ("@" if found[0].endswith("@") else ""), text)


def _credentials(url: str) -> re.Pattern[str]:
    return CREDENTIALS if CONTAINER.match(url) is None else PARAMETERS


def _is_hidden(name: str) -> bool:
    is_free = name.startswith(FREE)
    return name in SECRET or (is_free and (HARMLESS.fullmatch(name) is None or CREDENTIAL.search(name) is not None))
