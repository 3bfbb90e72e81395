"""What the library says: kinds of secrets that are told by their form, which ordinary notes do not have.

Its detectors for keywords and for entropy are left out: they take digests, ids and sentences for secrets.
Nothing is verified with the services that secrets belong to, so nothing leaves the machine. The library is
loaded (0.3 s) when there is something to ask it, and never by a plain install.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, get_args

from engramfs.errors import Unavailable

if TYPE_CHECKING:
    from detect_secrets.plugins.base import BasePlugin

MISSING = (
    "secrets in what is written are not looked for, since the extra [secrets] is not installed; "
    "pip install 'engramfs[secrets]' adds that"
)
_FURTHER = {  # kinds that the library does not know
    "GitHub Token": re.compile(r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    "Anthropic Key": re.compile(r"sk-ant-[a-z]+\d\d-[A-Za-z0-9_-]{80,}"),
    "OpenAI Key": re.compile(r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}"),
    "Google API Key": re.compile(r"AIza[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])"),
    "AWS Secret Key": re.compile(r"(?i:aws_secret_access_key)\s*[=:]\s*[0-9a-zA-Z/+]{40}(?![0-9a-zA-Z/+=])"),
}
# Of the library's, those that are asked alone: most take time with the square of a line.
Alone = Literal["Basic Auth Credentials", "JSON Web Token", "NPM tokens", "OpenAI Token", "Private Key"]
_ALONE = frozenset(get_args(Alone))
_PLACEHOLDER = re.compile(
    r"[<{$%\[].*|\W+|(.)\1*|(?:your|my|the|some|example)?[-_]?(?:pass(?:word|wd|phrase)?|pwd?|secret|token)",
    re.IGNORECASE,
)


@cache
def is_available() -> bool:
    """Whether the library is installed."""
    return find_spec("detect_secrets") is not None


def require() -> None:
    """Load the library. Raises `Unavailable` when it is not installed."""
    if not is_available():
        raise Unavailable(MISSING)
    _plugins()


@cache
def _plugins() -> "tuple[BasePlugin, ...]":
    from detect_secrets.plugins import (
        aws,
        azure_storage_key,
        basic_auth,
        github_token,
        gitlab_token,
        jwt,
        npm,
        openai,
        private_key,
        pypi_token,
        sendgrid,
        slack,
        square_oauth,
        stripe,
    )

    return (
        aws.AWSKeyDetector(),
        azure_storage_key.AzureStorageKeyDetector(),
        basic_auth.BasicAuthDetector(),
        github_token.GitHubTokenDetector(),
        gitlab_token.GitLabTokenDetector(),
        jwt.JwtTokenDetector(),
        npm.NpmDetector(),
        openai.OpenAIDetector(),
        private_key.PrivateKeyDetector(),
        pypi_token.PypiTokenDetector(),
        sendgrid.SendGridDetector(),
        slack.SlackDetector(),
        square_oauth.SquareOAuthDetector(),
        stripe.StripeDetector(),
    )


def kinds_in(line: str, alone: Alone | None = None) -> Iterator[str]:
    """The kinds of secrets in a line: of one detector, or of all that are not asked alone.

    Raises `ImportError` without the library.
    """
    for plugin in _plugins():
        is_asked = plugin.secret_type == alone if alone else plugin.secret_type not in _ALONE
        if is_asked and any(not _PLACEHOLDER.fullmatch(secret) for secret in plugin.analyze_string(line)):
            yield plugin.secret_type
    if alone:
        return
    for kind, pattern in _FURTHER.items():
        if pattern.search(line):
            yield kind
