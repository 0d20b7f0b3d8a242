"""``flopwatch mfu``: MFU from model, GPU, batch and step time, its arithmetic, and how other tools would count it."""

import argparse
import json
import sys
from pathlib import Path

from flopwatch import accelerators, model_names
from flopwatch.accelerator import DTYPES, Accelerator, dtype_of
from flopwatch.calculation import Inputs, calculate
from flopwatch.calculation_text import render
from flopwatch.conventions import CONVENTIONS, DEFAULT_CONVENTION
from flopwatch.documents import Documents, StackTokens
from flopwatch.shape import ModelShape

WRONG_USE = 2


class WrongInput(ValueError):
    """An option's value is not usable; the message names the option."""


def main(argv: list[str]) -> int:
    """Print the figure; returns 0, or 2 for a wrong option or a model that is not understood."""
    options = _parser().parse_args(argv)
    try:
        result = calculate(_inputs(options))
    except ValueError as error:
        sys.stderr.write(f"flopwatch mfu: {error}\n")
        return WRONG_USE
    sys.stdout.write(json.dumps(result.to_dict(), indent=2) + "\n" if options.json else render(result))
    return 0


def _parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(prog="flopwatch mfu", description="MFU of a run, with its arithmetic.")
    _add_run(parser)
    _add_counting(parser)
    parser.add_argument("--json", action="store_true", help="everything as JSON")
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    """What was run, on what, how fast."""
    add = parser.add_argument
    names = ", ".join(model_names.DESCRIPTIONS)
    add("--model", required=True, help=f"a Hugging Face config.json, a shape as JSON, or one of {names}")
    add("--gpu", required=True, help='as NVML names it: "NVIDIA H100 80GB HBM3"; or a product: "H100 SXM"')
    add("--gpus", type=int, required=True, help="GPUs of the run")
    add("--seq-len", type=int, required=True, help="tokens of a sequence")
    add("--global-batch", type=float, help="sequences of a step over all ranks, with gradient accumulation")
    add("--step-time", type=float, help="seconds of a step")
    add("--tokens-per-second", type=float, help="over all GPUs, instead of --global-batch and --step-time")
    add("--reported-mfu", type=float, help="percent, as the trainer prints it")
    add("--reported-tflops", type=float, help="TFLOP/s of one GPU, as the trainer prints it")


def _add_counting(parser: argparse.ArgumentParser) -> None:
    """How it is counted, and against what."""
    add = parser.add_argument
    kinds = ("none", "selective", "full")
    add("--dtype", default="bf16", help=f"number format of the matmuls: {', '.join(DTYPES)} (default: bf16)")
    add(
        "--convention",
        default=DEFAULT_CONVENTION,
        choices=tuple(CONVENTIONS),
        metavar="NAME",
        help=_conventions(),
    )
    add("--peak-tflops", type=float, help="dense peak of one GPU, instead of the table's")
    add("--recompute", default="none", choices=kinds, help="for HFU, shown apart from MFU")
    add("--lora-rank", type=int, help="low-rank adapters on every matrix, everything else frozen")
    add("--mtp", action="store_true", help="the config's multi-token-prediction layers are trained")
    add(
        "--documents",
        metavar="SUM,SQUARES",
        help="packed documents: sum of their lengths, sum of the squares",
    )
    add(
        "--stack",
        action="append",
        default=[],
        metavar="NAME=PER_TOKEN:LENGTH",
        help="an encoder's or tower's tokens",
    )


def _conventions() -> str:
    return f"how to count: {', '.join(CONVENTIONS)} (default: {DEFAULT_CONVENTION})"


def _inputs(options: argparse.Namespace) -> Inputs:
    """The options as values.

    Raises:
        ValueError: an option cannot be used.
    """
    dtype = dtype_of(options.dtype)
    if dtype is None:
        raise WrongInput(f"--dtype is {options.dtype!r}; allowed: {', '.join(DTYPES)}")
    shape = _shape(options.model, trains_mtp=options.mtp)
    return Inputs(
        shape=shape if options.lora_rank is None else shape.with_lora(options.lora_rank),
        accelerator=_accelerator(options.gpu, options.peak_tflops, dtype),
        gpu_name=options.gpu,
        gpus=options.gpus,
        seq_len=options.seq_len,
        tokens_per_second=_tokens_per_second(options),
        dtype=dtype,
        convention=options.convention,
        recompute=options.recompute,
        documents=_documents(options.documents),
        stacks=dict(_stack(text) for text in options.stack),
        reported_ratio=None if options.reported_mfu is None else options.reported_mfu / 100,
        reported_flops_per_gpu=None if options.reported_tflops is None else options.reported_tflops * 1e12,
    )


def _shape(model: str, *, trains_mtp: bool) -> ModelShape:
    """The shape of a well-known name or a JSON file."""
    named = model_names.by_name(model)
    if named is not None:
        return named
    try:
        description = json.loads(Path(model).read_text(encoding="utf-8"))
    except OSError as error:
        known = ", ".join(model_names.DESCRIPTIONS)
        raise WrongInput(
            f"--model is {model!r} ({error.strerror}); allowed: a readable file, or {known}"
        ) from error
    except ValueError as error:
        raise WrongInput(f"--model is {model!r}; allowed: a JSON file ({error})") from error
    if not isinstance(description, dict):
        raise WrongInput(f"--model is {model!r}; allowed: a JSON file that holds an object")
    if "model_type" in description:
        return ModelShape.from_hf_config(description, trains_mtp=trains_mtp)
    return ModelShape.from_dict(description)


def _accelerator(name: str, peak_tflops: float | None, dtype: str) -> Accelerator:
    """The GPU by its exact name, with the peak that was given.

    Raises:
        WrongInput: the name is not known and no peak was given.
    """
    if peak_tflops is not None:
        return accelerators.overridden(name, {dtype: peak_tflops})
    found = accelerators.by_name(name) or accelerators.by_product(name)
    if found is None:
        raise WrongInput(
            f"--gpu is {name!r}, which no table has{_near(name)}; allowed: the exact name that nvidia-smi -L prints, "
            "a product such as 'H100 SXM', or --peak-tflops with the dense peak"
        )
    if found.peak_flops(dtype) is None:
        formats = ", ".join(found.tflops) or "none"
        raise WrongInput(
            f"--dtype is {dtype!r}, for which {found.name} has no verified dense peak; allowed: {formats}, "
            "or --peak-tflops"
        )
    return found


def _near(name: str) -> str:
    """The products that may be meant, in words."""
    found = accelerators.products_like(name)
    return f" (there are {', '.join(found)})" if found else ""


def _tokens_per_second(options: argparse.Namespace) -> float:
    """Global tokens a second, from the rate or from batch and step time."""
    if options.tokens_per_second is not None:
        return _above_zero("--tokens-per-second", options.tokens_per_second)
    if options.global_batch is None or options.step_time is None:
        raise WrongInput("--global-batch and --step-time are needed, or --tokens-per-second")
    batch = _above_zero("--global-batch", options.global_batch)
    return batch * _above_zero("--seq-len", options.seq_len) / _above_zero("--step-time", options.step_time)


def _above_zero(option: str, value: float) -> float:
    if not value > 0:
        raise WrongInput(f"{option} is {value!r}; allowed: above 0")
    return value


def _documents(text: str | None) -> Documents | None:
    """Packed documents from ``SUM,SQUARES``."""
    if text is None:
        return None
    try:
        tokens, squared = (float(part) for part in text.split(","))
    except ValueError as error:
        raise WrongInput(f"--documents is {text!r}; allowed: two numbers, SUM,SQUARES") from error
    return Documents(tokens=tokens, squared_tokens=squared)


def _stack(text: str) -> tuple[str, StackTokens]:
    """A stack's tokens from ``NAME=PER_TOKEN:LENGTH``."""
    name, _, numbers = text.partition("=")
    try:
        per_token, length = (float(part) for part in numbers.split(":"))
    except ValueError as error:
        raise WrongInput(f"--stack is {text!r}; allowed: NAME=PER_TOKEN:LENGTH") from error
    return name, StackTokens(per_token=per_token, length=length)
