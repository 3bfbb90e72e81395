"""What looks like a secret is found by its form, and what agents write every day is not taken for one.

The secrets here are put together from parts, so that no scanner of repositories takes this file for a leak.
"""

import base64
import hashlib
import json
import random
import subprocess
import sys
import time
import uuid
from typing import get_args

import pytest

from engramfs.errors import HoldsSecret
from engramfs.history import hygiene
from engramfs.history.hygiene.detectors import Alone, kinds_in


def made(alphabet: str, length: int) -> str:
    return "".join(random.Random(length).choices(alphabet, k=length))


def in_base64(seed: int, size: int) -> str:
    return base64.b64encode(random.Random(seed).randbytes(size)).decode()


UPPER, LOWER, DIGITS = "ABCDEFGHJKLMNPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", "0123456789"
MIXED = UPPER + LOWER + DIGITS
HEADER = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "typ": "JWT"}).encode()).decode().rstrip("=")
PAYLOAD = base64.urlsafe_b64encode(json.dumps({"sub": "ann", "iat": 151623902}).encode()).decode().rstrip("=")

SECRETS = {
    "AWS Access Key": "AKIA" + made(UPPER + DIGITS, 16),
    "AWS Secret Key": "aws_secret_access_key = " + made(MIXED, 40),
    "Private Key": "-----BEGIN OPENSSH " + "PRIVATE KEY-----",
    "GitHub Token": "ghp_" + made(MIXED, 36),
    "GitLab Token": "glpat-" + made(MIXED, 20),
    "Slack Token": "xoxb-" + "123456789012-" + made(LOWER + DIGITS, 24),
    "Stripe Access Key": "sk_live_" + made(MIXED, 24),
    "JSON Web Token": f"{HEADER}.{PAYLOAD}." + made(MIXED, 43),
    "Basic Auth Credentials": "postgres://admin:" + "hunter2x9" + "@db.internal:5432/app",
    "SendGrid API Key": "SG." + made(MIXED, 22) + "." + made(MIXED, 43),
    "Anthropic Key": "sk-ant-" + "api03-" + made(MIXED, 93) + "AA",
    "OpenAI Key": "sk-" + "proj-" + made(MIXED, 60),
    "Google API Key": "AIza" + made(MIXED, 35),
    "NPM tokens": "//registry.npmjs.org/:_authToken=" + "npm_" + made(MIXED, 36),
    "Azure Storage Account access key": "AccountKey=" + made(MIXED, 86) + "==",
}


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("shape", ["{}", "It is {} for now.", '{{"note": "line\\n{}"}}', "- token: `{}`"])
def test_each_kind_is_found_wherever_it_stands(kind: str, shape: str) -> None:
    text = "# Notes\n\nOn Monday.\n" + shape.format(SECRETS[kind]) + "\nThe end.\n"
    assert (4, kind) in [(found.line, found.kind) for found in hygiene.find(text.encode())]


def test_a_secret_deep_in_a_large_file_is_found_with_its_line() -> None:
    text = "an ordinary line of notes\n" * 20_000 + SECRETS["GitHub Token"] + "\n"
    assert [(found.line, found.kind) for found in hygiene.find(text.encode())] == [(20_001, "GitHub Token")]


def a_token_of_json(size: int) -> str:
    parts = ({"alg": "HS256"}, {"note": "x" * size})
    return ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts
    )


HARD_TO_SEE = {
    "within a word": ("TOKEN_" + SECRETS["GitHub Token"], "GitHub Token"),
    "glued to a word": ("key=x" + SECRETS["AWS Access Key"], "AWS Access Key"),
    "a short one": ("xoxb-" + "1-a", "Slack Token"),
    "a long one": (a_token_of_json(9000), "JSON Web Token"),
    "with many slashes": ('aws_key = "' + "abcdefghi/" * 4 + '"', "AWS Access Key"),
    "behind others of its kind": ("ghp_" * 40 + made(MIXED, 36), "GitHub Token"),
    "behind much else": ("sk-" * 2000 + " " + SECRETS["Stripe Access Key"], "Stripe Access Key"),
    "with a letter that folds": ('aw\u017f to\u212aen "' + made(MIXED, 40) + '"', "AWS Access Key"),
}


@pytest.mark.parametrize("how", HARD_TO_SEE)
def test_one_is_found_however_it_is_written(how: str) -> None:
    text, kind = HARD_TO_SEE[how]
    assert kind in [found.kind for found in hygiene.find(text.encode())]


BEGINNINGS = """
    AKIA ASIA ghp_ github_pat_ glpat- glagent- GR1348941 xoxb- XoXp- sk_live_ eyJ sk- AIza SG. npm_
    pypi-AgEIcHlwaS5vcmc sq0csp- AccountKey= aws AWS aw\u017f pwd to\u212aen T3BlbkFJ PRIVATE KEY ://
    //r/:_authToken= https://hooks.slack.com/services/T1/B2/ user pw@ 1-a PuTTY-User-Key-File-2
    : = " ' / + - _ . \\ @ é 中文
"""
PIECES = [
    *SECRETS.values(),
    *BEGINNINGS.split(),
    *(made(alphabet, size) for alphabet in (MIXED, UPPER + DIGITS, LOWER) for size in (16, 20, 36, 40, 80)),
    *(a_token_of_json(size) for size in (1, 50, 3000)),
    *("", " ", "\n", "\t", "\r", "\u2028", "x" * 2500),
]


@pytest.mark.parametrize("seed", range(20))
def test_what_the_library_finds_in_any_line_is_found(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(40):
        text = "".join(chance.choices(PIECES, k=chance.randint(1, 25)))
        found = {(each.line, each.kind) for each in hygiene.find(text.encode())}
        assert found >= said_by_the_library(text), text


@pytest.mark.parametrize("seed", range(5))
def test_what_the_library_finds_in_a_name_is_found_in_every_directory(seed: int) -> None:
    chance = random.Random(seed)
    pieces = [piece.replace("/", "+").replace("\n", "") for piece in PIECES if len(piece) < 120]
    for _ in range(100):
        name = "".join(chance.choices(pieces, k=chance.randint(1, 5)))
        if said_by_the_library(name):
            with pytest.raises(HoldsSecret):
                hygiene.check_name(f"notes/of 2026/{name}".encode())


def said_by_the_library(text: str) -> set[tuple[int, str]]:
    """What all detectors say of whole lines."""
    detectors: list[Alone | None] = [None, *get_args(Alone)]
    return {
        (number, kind)
        for number, line in enumerate(text.split("\n"), 1)
        for detector in detectors
        for kind in kinds_in(line, detector)
    }


@pytest.mark.parametrize(
    "piece", ["://a:b@", "eyJ", "eyJ.", "sk-", "awskey", "xox-", "AKIA", "T3BlbkFJ//", "\u017f "]
)
def test_no_line_takes_long_to_look_at(piece: str) -> None:
    begun = time.process_time()
    hygiene.find((piece * 60_000)[:60_000].encode())
    assert time.process_time() - begun < 1


ORDINARY = {
    "git hashes": "\n".join(hashlib.sha1(bytes([n])).hexdigest() for n in range(200)),
    "sha256 digests": "\n".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(200)),
    "uuids": "\n".join(str(uuid.UUID(bytes=random.Random(n).randbytes(16))) for n in range(200)),
    "a base64 image": "data:image/png;base64,"
    + base64.b64encode(random.Random(1).randbytes(100_000)).decode(),
    "wrapped base64": base64.encodebytes(random.Random(2).randbytes(100_000)).decode(),
    "words about secrets": (
        "The password is kept in the vault. Ask Ann for the API key; the token expires on Friday.\n"
        "password: see 1Password\nsecret = None\napi_key = os.environ['API_KEY']\nBearer <token>\n"
    ),
    "addresses": "https://example.org/a/b?c=d#e ssh://git@github.com:22/x http://localhost:8080/@ann\n",
    "placeholders": "postgres://user:password@host/db https://<user>:<password>@host http://u:${PASS}@h\n",
    "identifiers": "sk-learn-compatible-estimator-with-a-long-name some_very_long_function_name_in_python\n",
    "rules": "-" * 80 + "\n" + "=" * 80 + "\n" + "|" + "---|" * 30,
    "Chinese": "密码保存在保险库里，请不要写在这里。\n" * 50,
    "a lock file": '"integrity": "sha512-'
    + base64.b64encode(random.Random(3).randbytes(64)).decode()
    + '"\n',
}


@pytest.mark.parametrize("what", ORDINARY)
def test_ordinary_notes_hold_none(what: str) -> None:
    assert hygiene.find(ORDINARY[what].encode()) == []


KEY = SECRETS["AWS Access Key"].encode()
NO_TEXT = {
    "a NUL behind it": (b"first\nk " + KEY + b"\0\0", 2),
    "a NUL on a line of its own": (b"first\nk = " + KEY + b"\n\0", 2),
    "a NUL before it": (b"\0\nk = " + KEY, 2),
    "NULs on both sides, as a map leaves them": (b"\0" * 20 + KEY + b"\0" * 24, 1),
    "among bytes that are no text": (bytes(range(256)) * 40 + b"\n" + KEY + bytes(range(256)), 42),
    "deep in a file that begins as text": (b"a line\n" * 10_000 + b"\0" + KEY + b"\n", 10_001),
    "UTF-16": ("first\r\nk = ".encode("utf-16") + KEY.decode().encode("utf-16-le"), 2),
    "UTF-16, the other order of bytes": (("first\nk = " + KEY.decode()).encode("utf-16-be"), 2),
    "UTF-16, amid other letters": (f"密钥\n密钥{KEY.decode()}密钥".encode("utf-16"), 2),
    "UTF-16, in a binary file": (b"\x7fELF\0" + b"\n\1\2" + KEY.decode().encode("utf-16-le") + b"\3", 2),
}


@pytest.mark.parametrize("how", NO_TEXT)
def test_one_is_found_in_a_file_that_is_no_text(how: str) -> None:
    content, line = NO_TEXT[how]
    assert [(found.line, found.kind) for found in hygiene.find(content)] == [(line, "AWS Access Key")]


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_each_kind_is_found_in_utf_16(kind: str, encoding: str) -> None:
    assert kind in [found.kind for found in hygiene.find(f" {SECRETS[kind]}\n".encode(encoding))]


def test_bytes_of_no_meaning_hold_none() -> None:
    assert hygiene.find(random.Random(5).randbytes(1 << 20)) == []


@pytest.mark.parametrize("piece", [b"x\0", b"\0x", b"\0", b"://a:b@\0", b"e\0y\0J\0", b"A\0B\0C\0 \1"])
def test_no_file_that_is_no_text_takes_long_to_look_at(piece: bytes) -> None:
    begun = time.process_time()
    hygiene.find((piece * 60_000)[:60_000])
    assert time.process_time() - begun < 1


def test_a_refusal_says_where_and_what_kind_and_never_the_secret() -> None:
    secret = SECRETS["GitHub Token"]
    with pytest.raises(HoldsSecret) as raised:
        hygiene.check("notes/deploy.md", f"first\n{secret}\n".encode())
    assert raised.value.message == (
        "refused to write notes/deploy.md: line 2 looks like a secret (GitHub Token); "
        "write where it is kept instead"
    )
    assert secret not in repr(raised.value.details)


def test_the_library_is_loaded_only_when_there_is_something_to_ask_it() -> None:
    program = """
import sys
from engramfs.history import hygiene
assert hygiene.find(b"an ordinary note of an ordinary day\\n" * 1000) == []
assert "detect_secrets" not in sys.modules, "loaded for nothing"
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
