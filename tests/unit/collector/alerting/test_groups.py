from dataclasses import replace

from flopwatch_collector.alerting.groups import GroupRecord, key_of, speak
from flopwatch_collector.alerting.state import AlertRecord, fingerprint
from flopwatch_collector.config import AlertSettings

SETTINGS = AlertSettings()


def record(job: str = "j1", rule: str = "MfuLow", severity: str = "warning") -> AlertRecord:
    labels = {"cluster": "a", "job_id": job}
    return AlertRecord(
        fingerprint=fingerprint(rule, labels),
        rule=rule,
        severity=severity,  # type: ignore[arg-type]
        labels=labels,
        state="firing",
        event_seconds=0.0,
        active_since_seconds=0.0,
    )


KEY = key_of(record())


def test_a_groups_first_message_waits_thirty_seconds_for_companions() -> None:
    change = ("firing", record())

    first = speak([change], [], {}, SETTINGS, 1_000.0)
    early = speak([change], [], first.groups, SETTINGS, 1_029.0)
    ready = speak([change], [], early.groups, SETTINGS, 1_030.0)

    assert (first.changes, early.changes) == ((), ())
    assert ready.changes == (change,)
    assert ready.groups == {KEY: GroupRecord(sent_seconds=1_030.0)}


def test_later_changes_of_a_group_wait_for_its_interval() -> None:
    change = ("resolved", record())
    spoke = {KEY: GroupRecord(sent_seconds=1_000.0)}

    early = speak([change], [], spoke, SETTINGS, 1_299.0)
    ready = speak([change], [], early.groups, SETTINGS, 1_300.0)

    assert early.changes == ()
    assert ready.changes == (change,)
    assert ready.groups == {}


def test_what_has_become_critical_does_not_wait_for_the_interval() -> None:
    change = ("firing", record(severity="critical"))
    spoke = {KEY: GroupRecord(sent_seconds=1_000.0)}

    first = speak([change], [record()], spoke, SETTINGS, 1_010.0)
    ready = speak([change], [record()], first.groups, SETTINGS, 1_040.0)

    assert ready.changes == (change,)


def test_a_message_is_repeated_every_four_hours_while_it_fires() -> None:
    spoke = {KEY: GroupRecord(sent_seconds=1_000.0)}

    early = speak([], [record()], spoke, SETTINGS, 1_000.0 + 14_399.0)
    again = speak([], [record()], early.groups, SETTINGS, 1_000.0 + 14_400.0)

    assert early.changes == ()
    assert again.changes == (("firing", record()),)
    assert again.groups == {KEY: GroupRecord(sent_seconds=15_400.0)}


def test_without_an_interval_of_repetition_nothing_is_repeated() -> None:
    never = replace(SETTINGS, repeat_interval_seconds=0.0)

    assert speak([], [record()], {KEY: GroupRecord(sent_seconds=0.0)}, never, 1e9).changes == ()


def test_what_ends_before_it_is_said_begins_to_wait_anew() -> None:
    waiting = speak([("firing", record())], [], {}, SETTINGS, 1_000.0)

    assert speak([], [], waiting.groups, SETTINGS, 1_015.0).groups == {}
