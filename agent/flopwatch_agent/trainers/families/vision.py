"""Trainers of vision models: steps counted within an epoch, the epoch counted from zero."""

from flopwatch_agent.trainers.grammar import Grammar, anchor, number_field

TIMM = Grammar(
    family="timm",
    literal="Train: ",
    anchor=anchor(
        r"\bTrain: (?P<epoch_index>\d+)(?:/\d+)? \[\s*(?P<step_in_epoch>\d+)/(?P<steps_in_epoch>\d+)"
        r"\s+\(\s*\d+%\)\]\s+Loss:?\s+(?P<loss>NUM)"
    ),
    needs=("seconds",),
    fields=(
        number_field("seconds", r"\bTime:? ", "s,"),
        number_field("data_seconds", r"\bData:? "),
    ),
    covers="one",
    first_step=0,
)

METRIC_LOGGER = Grammar(
    family="MetricLogger",
    literal="  eta: ",
    anchor=anchor(
        r"\b(?:(?:[Ee]poch:? ?\[(?P<epoch_index>\d+)(?:/\d+)?\])|Training)\s+"
        r"\[\s*(?P<step_in_epoch>\d+)/(?P<steps_in_epoch>\d+)\]\s+eta: "
    ),
    needs=("seconds", "loss"),
    fields=(
        number_field("seconds", r"\stime: "),
        number_field("data_seconds", r"\sdata: "),
        number_field("loss", r"\s(?:total_)?loss: "),
    ),
    window=20,
    first_step=0,
)
"""torchvision's references and what copied them (DETR, DeiT, MAE, DINO, BLIP): means over twenty steps."""

IMAGENET = Grammar(
    family="PyTorch ImageNet",
    literal="Loss ",
    anchor=anchor(
        r"\bEpoch: \[(?P<epoch_index>\d+)\]\[\s*(?P<step_in_epoch>\d+)/(?P<steps_in_epoch>\d+)\]"
        r"\s+Time\s+(?P<seconds>NUM) \("
    ),
    needs=("loss",),
    fields=(number_field("data_seconds", r"\bData\s+"), number_field("loss", r"\bLoss\s+")),
    covers="one",
    first_step=0,
)

SWIN = Grammar(
    family="Swin",
    literal="INFO Train: [",
    anchor=anchor(
        r"\bTrain: \[(?P<epoch_index>\d+)/\d+\]\[\s*(?P<step_in_epoch>\d+)/(?P<steps_in_epoch>\d+)\]\s+eta "
    ),
    needs=("seconds", "loss"),
    fields=(number_field("seconds", r"\stime "), number_field("loss", r"\sloss ")),
    covers="one",
    first_step=0,
)

DETECTRON = Grammar(
    family="detectron2",
    literal="total_loss: ",
    anchor=anchor(r"\biter: (?P<step>\d+)\s+total_loss: (?P<loss>NUM)"),
    needs=("mean_seconds",),
    fields=(number_field("mean_seconds", r"\stime: "), number_field("data_seconds", r"\sdata_time: ")),
    order=("timestamps", "mean_counter"),
    first_step=0,
)
"""Its time is the mean since the start, with four decimals: after some hours the lines' clock tells more."""

MMCV = Grammar(
    family="MMCV",
    literal=", data_time: ",
    anchor=anchor(
        r"\b(?:Epoch \[(?P<epoch_number>\d+)\]\[\s*(?P<step_in_epoch>\d+)/(?P<steps_in_epoch>\d+)\]"
        r"|Iter \[\s*(?P<step>\d+)/(?P<total_steps>\d+)\])\s+lr: "
    ),
    needs=("seconds", "loss"),
    fields=(
        number_field("seconds", r",\s+time: "),
        number_field("data_seconds", r",\s+data_time: "),
        number_field("loss", r",\s+loss: "),
    ),
)

DIT = Grammar(
    family="DiT",
    literal="Train Steps/Sec: ",
    anchor=anchor(r"\(step=(?P<step>\d+)\) Train Loss: (?P<loss>NUM)"),
    needs=("steps_per_second",),
    fields=(number_field("steps_per_second", r"Train Steps/Sec: "),),
    order=("rate",),
    pauses_inside=True,
)
"""DiT and what was made of it (SiT, fast-DiT, REPA): a mean since the line before."""

GRAMMARS = (TIMM, METRIC_LOGGER, IMAGENET, SWIN, DETECTRON, MMCV, DIT)
