"""Trainers of speech, translation, pairs of image and text, and Keras: most count within an epoch."""

import re

from flopwatch_agent.trainers.grammar import Field, Grammar, anchor, number_field

ESPNET = Grammar(
    family="ESPnet", literal="epoch:train:", needs=("seconds", "loss"),
    anchor=anchor(
        r"\b(?P<epoch_number>\d+)epoch:train:(?P<interval_begin>\d+)-(?P<step_in_epoch>\d+)batch(?::\d+num_updates)?: "
    ),
    fields=tuple(
        number_field(quantity, rf"\b{key}=")
        for quantity, key in (("seconds", "train_time"), ("data_seconds", "iter_time"), ("loss", "loss"))
    ),
    order=("timestamps", "unstamped"),
)  # fmt: skip
"""It counts batches, and times optimizer steps of ``accum_grad`` batches; FunASR prints the same."""

ICEFALL = Grammar(
    family="icefall",
    literal="loss[",
    anchor=anchor(
        r"\bEpoch (?P<epoch_number>\d+), batch (?P<step_in_epoch>\d+), "
        r"(?:global_batch_idx: (?P<step>\d+), )?(?:batch size: \d+, )?(?:train_)?loss\["
    ),
    needs=("loss",),
    fields=(number_field("loss", r"\[(?:[^\]]{0,400}?[ ,])?loss="),),
    order=("timestamps",),
    first_step=0,
    pauses_inside=True,
)
"""icefall and the recipes of k2: every rank prints its own loss, none a time."""

OPEN_CLIP = Grammar(
    family="OpenCLIP", literal="Train Epoch: ", needs=("seconds", "loss"),
    anchor=anchor(
        r"\bTrain Epoch: (?P<epoch_index>\d+) \[\s*(?P<samples_in_epoch>\d+)/(?P<samples_per_epoch>\d+) \(\d+%\)\]"
    ),
    fields=(
        number_field("seconds", r"\bBatch \(t\):? "),
        number_field("samples_per_second", r"\bBatch \(t\):? [\d.]+, ", "/s"),
        number_field("loss", r"(?<!_)\bLoss: "), number_field("data_seconds", r"\bData \(t\):? "),
    ),
)  # fmt: skip

OPENNMT = Grammar(
    family="OpenNMT-py",
    literal="xent: ",
    anchor=anchor(r"\bStep\s+(?P<step>\d+)(?:/\s*(?P<total_steps>\d+))?; acc\S*:\s*NUM"),
    needs=("loss", "elapsed_seconds"),
    fields=(
        number_field("loss", r"\bxent:\s*"),
        number_field("elapsed_seconds", r";\s*", r" sec\b"),
    ),
    order=("counter",),
    pauses_inside=True,
)

_DRAWN = r"(?P<step_in_epoch>\d+)/(?P<steps_in_epoch>(?P=step_in_epoch)) "

KERAS = Grammar(
    family="Keras",
    literal=" - loss: ",
    anchor=anchor(
        rf"(?:^|\s){_DRAWN}(?:\[=+\] - \d+s |- \d+s - |\u2501+ [1-9]\d*s )"
        r"(?=[^\n]{0,2000}?\bloss: NUM)"
    ),
    needs=("loss",),
    begun_by="epochs_planned",
    fields=(
        Field("covered", re.compile(r"/(\d+) ")),
        number_field("loss", r"(?<![\w_])loss: "),
        Field(
            "pause_seconds", re.compile(r"(?:\]| -|\u2501) ([1-9]\d*)s (?!(?:- )?\d\d+ms/step)(?=.*\bval_)")
        ),
        number_field("seconds", r"\s(?=\d\d)", r"ms/step", 1e-3),
        number_field("seconds", r"\s0s(?: -)? ", r"ms/step", 1e-3),
        number_field("interval_seconds", r"(?:\]| -|\u2501) ", r"s\s"),
    ),
    order=("printed", "interval"),
)
"""The last drawing of an epoch's bar. One digit of milliseconds tells less than the whole seconds of the epoch."""

KERAS_EPOCH = Grammar(
    family="Keras",
    literal="Epoch ",
    anchor=anchor(r"^\W*Epoch (?P<epoch_number>\d+)/(?P<epochs_planned>\d+)\s*$"),
    secondary=True,
)

GRAMMARS = (ESPNET, ICEFALL, OPEN_CLIP, OPENNMT, KERAS)
