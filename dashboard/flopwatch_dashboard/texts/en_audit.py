"""English texts of the page that says who changed what."""

AUDIT_TEXTS: dict[str, str] = {
    "audit.title": "Who changed what",
    "audit.lines": "Changes and sign-ins",
    "audit.sub": "newest first · refused sign-ins too · {range} · kept for a year",
    "audit.by": "Who",
    "audit.by_hint": "name or address",
    "audit.what": "What",
    "audit.what_hint": "costs, silences, signed in …",
    "audit.col.when": "When",
    "audit.col.by": "Who",
    "audit.col.from": "From",
    "audit.col.what": "What",
    "audit.col.content": "Content",
    "audit.action.signed in": "signed in",
    "audit.action.signed out": "signed out",
    "audit.action.sign-in refused": "sign-in refused",
    "audit.none": "Nothing of this kind was done in this range.",
    "audit.more": "{n} older ones fit as well: narrow the range or the filter.",
    "audit.failed": "The collector does not say: {message}",
    "audit.lost": "The server does not answer.",
}
