"""English texts about who has signed in, what they may do, and saving the site's costs."""

SIGNIN_TEXTS: dict[str, str] = {
    "role.viewer": "viewer",
    "role.operator": "operator",
    "role.admin": "admin",
    "person.teams": "jobs of {teams}",
    "person.leave": "Sign out",
    "read_only.role": "You look as {role}. Changes need the role operator: ask an administrator for such a token.",
    "read_only.team": "You see the jobs of {teams} only. Changes need a token without a team.",
    "read_only.source": "This dashboard runs on its own and changes nothing: open the collector's pages for that.",
    "desk.failed": "Not done: {message}",
    "alerts.audit": "Who changed what",
    "desk.lost": "Not done: the server does not answer.",
    "costs.save": "Save for everyone",
    "costs.save_text": (
        "Inputs that change: {changes}. They become the site's costs: the Fleet page, reports and alerts use them "
        "from then on, in place of the settings file's."
    ),
    "costs.save_why": "Reason, for the record",
    "costs.saved_by": "Costs saved by {by}, {when}: {comment}",
    "costs.saved_note": "They stand in place of the settings file's.",
    "costs.file_differs": "The settings file's costs were changed since.",
    "costs.withdraw": "Use the settings file's again",
    "costs.done": "Saved. The new costs count from now on.",
    "costs.withdrawn": "The settings file's costs count again.",
}
