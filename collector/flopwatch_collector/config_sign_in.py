"""``[sign_in]``: how people sign in besides with a token, and how long that lasts."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from flopwatch.settings import SettingError, section

LONGEST_SESSION_SECONDS = 90 * 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class SignInSettings:
    """``[sign_in]``; checked when made.

    Raises:
        SettingError: a value is not allowed, or one needs another.
    """

    session_seconds: float = 43_200.0
    """A session ends so long after the sign-in."""
    idle_seconds: float = 14_400.0
    """And after so long without a request; an open page asks every few seconds."""
    secure_cookies: Literal["auto", "yes"] = "auto"
    """``auto``: over TLS here, or where ``collector.public_url`` is HTTPS."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks of reverse proxies whose headers are believed."""
    proxy_user_header: str | None = None
    """The header in which such a proxy names the person that it has signed in."""
    proxy_groups_header: str | None = None
    """The header with that person's groups, separated by commas."""
    oidc_issuer: str | None = None
    """Address of an OpenID Connect provider."""
    oidc_client_id: str | None = None
    oidc_client_secret: str | None = field(default=None, repr=False)
    oidc_client_secret_file: Path | None = None
    oidc_scopes: str = "openid profile email"
    oidc_user_claim: str = "preferred_username"
    """The claim that names the person; without it ``email``, then ``sub``."""
    oidc_groups_claim: str = "groups"
    oidc_ca_file: Path | None = None
    admin_groups: tuple[str, ...] = ()
    operator_groups: tuple[str, ...] = ()
    viewer_groups: tuple[str, ...] = ()
    """Groups whose members may look; with none, ``default_role`` decides about everybody."""
    default_role: Literal["none", "viewer", "operator"] = "viewer"
    """Of people whom a proxy or provider has signed in and who are in none of the groups."""
    team_groups: dict[str, str] = field(default_factory=dict)
    """Group → team (account): its members who are only viewers see the jobs of their teams."""

    def __post_init__(self) -> None:
        for name, most in (
            ("session_seconds", LONGEST_SESSION_SECONDS),
            ("idle_seconds", LONGEST_SESSION_SECONDS),
        ):
            if not 60.0 <= getattr(self, name) <= most:
                raise SettingError(f"sign_in.{name}", getattr(self, name), f"60 to {most:.0f}")
        self._check_proxy()
        self._check_oidc()
        for group, team in self.team_groups.items():
            if not isinstance(team, str) or not team:
                raise SettingError(f"sign_in.team_groups.{group}", team, "the name of a team (account)")

    def _check_proxy(self) -> None:
        for text in self.trusted_proxies:
            try:
                ipaddress.ip_network(text, strict=False)
            except (ValueError, TypeError) as error:
                allowed = "addresses or networks, such as 10.0.0.5 or 10.1.0.0/16"
                raise SettingError("sign_in.trusted_proxies", text, allowed) from error
        if self.proxy_user_header is not None and not self.trusted_proxies:
            allowed = "the proxy's address: a header of anybody else would sign in anybody"
            raise SettingError("sign_in.trusted_proxies", [], allowed)
        if self.proxy_groups_header is not None and self.proxy_user_header is None:
            raise SettingError(
                "sign_in.proxy_user_header",
                None,
                "the header that names the person, beside proxy_groups_header",
            )

    def _check_oidc(self) -> None:
        if self.oidc_issuer is None:
            return
        parts = urlsplit(self.oidc_issuer)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise SettingError(
                "sign_in.oidc_issuer", self.oidc_issuer, "an address such as https://id.example.org"
            )
        if not self.oidc_client_id:
            raise SettingError(
                "sign_in.oidc_client_id", self.oidc_client_id, "the client's id at the provider"
            )
        if "openid" not in self.oidc_scopes.split():
            raise SettingError("sign_in.oidc_scopes", self.oidc_scopes, "scopes with openid among them")
        if self.oidc_client_secret is not None and self.oidc_client_secret_file is not None:
            raise SettingError(
                "sign_in.oidc_client_secret_file",
                str(self.oidc_client_secret_file),
                "absent beside oidc_client_secret",
            )

    @property
    def signs_in(self) -> bool:
        """Whether people can sign in without a token."""
        return self.oidc_issuer is not None or self.proxy_user_header is not None

    def trusts(self, address: str) -> bool:
        """Whether headers of this address are believed."""
        try:
            asked = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(asked in ipaddress.ip_network(text, strict=False) for text in self.trusted_proxies)

    def client_secret(self) -> str | None:
        """The client's secret at the provider; None for a public client.

        Raises:
            SettingError: its file cannot be read, or is empty.
        """
        if self.oidc_client_secret_file is None:
            return self.oidc_client_secret
        name = "sign_in.oidc_client_secret_file"
        try:
            text = self.oidc_client_secret_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            place = str(self.oidc_client_secret_file)
            raise SettingError(name, place, f"a readable file ({error.strerror})") from error
        if not text:
            raise SettingError(
                name, str(self.oidc_client_secret_file), "a file that holds the secret; it is empty"
            )
        return text


def read_sign_in(tables: Mapping[str, Any], environ: Mapping[str, str]) -> SignInSettings:
    """``[sign_in]`` of a loaded file and the environment.

    Raises:
        SettingError: an unknown setting, a wrong type, or a value that is not allowed.
    """
    return section(SignInSettings, "sign_in", tables, environ)
