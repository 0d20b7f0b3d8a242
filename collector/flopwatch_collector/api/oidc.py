"""Sign-in with an OpenID Connect provider: the authorization code flow with PKCE, state and nonce.

Nothing is kept here between leaving and coming back: what has to be the same is in a cookie of the browser.
"""

import importlib
import json
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from flopwatch.settings import SettingError
from flopwatch_collector.api.people import Person, person_of
from flopwatch_collector.config_sign_in import SignInSettings

ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
)
"""Signatures by the provider's own key: never ``none``, never one made with the client's secret."""
KEPT_SECONDS = 3_600.0
"""The provider's description and keys are asked anew after this long, keys also for one that is not known."""
LEEWAY_SECONDS = 60
TIMEOUT_SECONDS = 10.0
LARGEST_ANSWER_BYTES = 1 << 20
_WRONG = (OSError, ValueError, KeyError, TypeError)


class Denied(Exception):
    """The provider did not sign the person in; the message says why."""

    def __init__(self, message: str, *, in_no_group: bool = False) -> None:
        super().__init__(message)
        self.in_no_group = in_no_group


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrived:
    """Somebody who came back from the provider."""

    person: Person
    to: str
    """Where they wanted to go."""
    id_token: str
    """The provider's word on them, which it wants to see again when they leave."""


@dataclass(slots=True)
class Provider:
    """One provider. Safe for threads; its methods wait for the network."""

    settings: SignInSettings
    secret: str | None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _known: dict[str, tuple[float, Any]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What people know it by: its host."""
        return urlsplit(self.settings.oidc_issuer or "").hostname or ""

    def begin(self, back: str, to: str) -> tuple[str, str]:
        """The address to lead the person to, and what the browser has to bring back.

        Raises:
            Denied: the provider does not answer, or not as it should.
        """
        nonce, verifier = secrets.token_urlsafe(24), secrets.token_urlsafe(48)
        endpoint = self._text("authorization_endpoint")
        with self._client(back) as client:
            address, state = client.create_authorization_url(endpoint, nonce=nonce, code_verifier=verifier)
        return address, _packed({"state": state, "nonce": nonce, "verifier": verifier, "to": to})

    def finish(self, back: str, pending: str, came: Mapping[str, str]) -> Arrived:
        """Who has signed in, and where they wanted to go.

        Raises:
            Denied: they have not, or the answer is not one to this browser's question.
        """
        kept = _unpacked(pending)
        if not kept or not secrets.compare_digest(kept["state"].encode(), came.get("state", "").encode()):
            raise Denied("this is not the answer to a sign-in that was begun here; begin again")
        if "error" in came or "code" not in came:
            raise Denied((came.get("error_description") or came.get("error") or "no code was given")[:200])
        token = self._token(back, came["code"], kept["verifier"])
        proof = str(token.get("id_token", ""))
        claims = self._claims(proof, kept["nonce"])
        person = self._person({**self._more(claims, token), **claims})
        return Arrived(person=person, to=kept["to"], id_token=proof)

    def leave(self, id_token: str, back: str) -> str | None:
        """The address that ends the person's session at the provider and leads ``back``; None where it has none.

        Raises:
            Denied: the provider does not answer, or not as it should.
        """
        endpoint = self._described().get("end_session_endpoint")
        if not isinstance(endpoint, str) or urlsplit(endpoint).scheme not in ("http", "https"):
            return None
        asked = {"client_id": self.settings.oidc_client_id or "", "post_logout_redirect_uri": back}
        if id_token:
            asked["id_token_hint"] = id_token
        return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(asked)}"

    def _person(self, claims: Mapping[str, Any]) -> Person:
        names = (claims.get(name) for name in (self.settings.oidc_user_claim, "email", "sub"))
        name = next((one for one in names if isinstance(one, str) and one), "")
        found = person_of(name, groups_in(claims, self.settings.oidc_groups_claim), self.settings)
        if found is None:
            raise Denied(f"{name} is in no group that may look", in_no_group=True)
        return found

    def _token(self, back: str, code: str, verifier: str) -> Mapping[str, Any]:
        endpoint = self._text("token_endpoint")
        oauth = importlib.import_module("authlib.common.errors")
        try:
            with self._client(back) as client:
                token = client.fetch_token(endpoint, code=code, code_verifier=verifier)
        except (oauth.AuthlibBaseError, *_WRONG) as error:
            raise Denied(f"the provider gave no token: {str(error)[:200]}") from error
        return dict(token)

    def _claims(self, text: str, nonce: str) -> dict[str, Any]:
        """What the provider says of the person, once its signature, audience, time and nonce are right."""
        jwt, errors = importlib.import_module("joserfc.jwt"), importlib.import_module("joserfc.errors")
        registry = jwt.JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": self._text("issuer")},
            aud={"essential": True, "value": self.settings.oidc_client_id},
            exp={"essential": True},
            sub={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            try:
                token = jwt.decode(text, self._keys(), algorithms=list(ALGORITHMS))
            except (errors.JoseError, ValueError):  # a key that the provider has changed meanwhile
                token = jwt.decode(text, self._keys(anew=True), algorithms=list(ALGORITHMS))
            registry.validate(token.claims)
        except (errors.JoseError, *_WRONG) as error:
            raise Denied(f"the provider's token is not right: {str(error)[:200]}") from error
        claims = dict(token.claims)
        if claims.get("azp", self.settings.oidc_client_id) != self.settings.oidc_client_id:
            raise Denied("the provider's token is for another client")
        return claims

    def _more(self, claims: Mapping[str, Any], token: Mapping[str, Any]) -> dict[str, Any]:
        """What the provider says of the person elsewhere, where the token leaves their name or groups out."""
        wanted = {self.settings.oidc_groups_claim, self.settings.oidc_user_claim}
        endpoint = self._described().get("userinfo_endpoint")
        if wanted <= set(claims) or not isinstance(endpoint, str):
            return {}
        told = self._fetched(endpoint, str(token.get("access_token", "")))
        if told.get("sub") != claims.get("sub"):
            raise Denied("the provider spoke of somebody else")
        return told

    def _text(self, name: str) -> str:
        value = self._described().get(name)
        if not isinstance(value, str) or not value:
            raise Denied(f"the provider's description has no {name}")
        return value

    def _described(self) -> dict[str, Any]:
        issuer = (self.settings.oidc_issuer or "").rstrip("/")
        found = self._kept("description", f"{issuer}/.well-known/openid-configuration")
        if str(found.get("issuer", "")).rstrip("/") != issuer:
            raise Denied(f"the provider at {issuer} calls itself {str(found.get('issuer'))[:200]!r}")
        return found

    def _keys(self, *, anew: bool = False) -> Any:
        told = self._kept("keys", self._text("jwks_uri"), anew=anew)
        return importlib.import_module("joserfc.jwk").KeySet.import_key_set(told)

    def _kept(self, what: str, address: str, *, anew: bool = False) -> dict[str, Any]:
        now = time.monotonic()
        with self._lock:
            at, known = self._known.get(what, (now - 2 * KEPT_SECONDS, None))
        if not anew and now - at < KEPT_SECONDS:
            return dict(known)
        told = self._fetched(address)
        with self._lock:
            self._known[what] = (now, told)
        return told

    def _fetched(self, address: str, bearer: str | None = None) -> dict[str, Any]:
        requests = importlib.import_module("requests")
        headers = {"accept": "application/json", **({"authorization": f"Bearer {bearer}"} if bearer else {})}
        try:
            answer = requests.get(address, headers=headers, timeout=TIMEOUT_SECONDS, verify=self._verify())
            answer.raise_for_status()
            told = answer.json() if len(answer.content) <= LARGEST_ANSWER_BYTES else None
        except _WRONG as error:  # requests' errors are OSErrors
            raise Denied(f"the provider does not answer: {str(error)[:200]}") from error
        if not isinstance(told, dict):
            raise Denied(f"{address} is not what was expected")
        return told

    def _client(self, back: str) -> Any:
        """The OAuth client of this sign-in."""
        session = importlib.import_module("authlib.integrations.requests_client").OAuth2Session
        made = session(
            self.settings.oidc_client_id,
            self.secret,
            scope=self.settings.oidc_scopes,
            redirect_uri=back,
            code_challenge_method="S256",
            token_endpoint_auth_method="client_secret_basic" if self.secret else "none",
            default_timeout=TIMEOUT_SECONDS,
        )
        made.verify = self._verify()
        return made

    def _verify(self) -> str | bool:
        return True if self.settings.oidc_ca_file is None else str(self.settings.oidc_ca_file)


def provider_of(settings: SignInSettings) -> Provider | None:
    """The provider of the settings; None where they name none.

    Raises:
        SettingError: its secret cannot be read, or the packages for it are not installed.
    """
    if settings.oidc_issuer is None:
        return None
    try:
        importlib.import_module("authlib.integrations.requests_client")
        importlib.import_module("joserfc.jwt")
    except ImportError as error:
        allowed = f"pip install 'flopwatch[server,oidc]' ({error.name} is missing)"
        raise SettingError("sign_in.oidc_issuer", settings.oidc_issuer, allowed) from error
    return Provider(settings, settings.client_secret())


def groups_in(claims: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """The groups in a claim, nested ones by dots (``realm_access.roles``): a list of texts, or one text."""
    value: Any = claims.get(name)
    if value is None and "." in name:
        value = claims
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, str):
        return (value,)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _packed(values: Mapping[str, str]) -> str:
    return json.dumps(values).encode().hex()


def _unpacked(text: str) -> dict[str, str]:
    """What ``_packed`` packed; nothing where it is not that."""
    try:
        values = json.loads(bytes.fromhex(text))
    except ValueError:
        return {}
    names = {"state", "nonce", "verifier", "to"}
    right = (
        isinstance(values, dict) and set(values) == names and all(isinstance(v, str) for v in values.values())
    )
    return values if right else {}
