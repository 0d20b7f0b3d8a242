"""All grammars of text logs, the more specific before the more general."""

from flopwatch_agent.trainers.families import (
    blocks,
    epochs,
    huggingface,
    megatron,
    pretrain,
    rl,
    small,
    vision,
)

GRAMMARS = (
    *megatron.GRAMMARS, *rl.GRAMMARS, *pretrain.GRAMMARS, *blocks.GRAMMARS, *huggingface.GRAMMARS,
    *vision.GRAMMARS, *small.GRAMMARS, *epochs.GRAMMARS,
)  # fmt: skip
COMPANIONS = (
    megatron.BRIDGE_COMPANION, rl.NEMO_RL_EPOCH, rl.NEMO_RL_STEP, rl.NEMO_RL_LOSS, rl.DEEPSPEED_CHAT_STEP,
    epochs.KERAS_EPOCH,
)  # fmt: skip
"""Lines that complete a row of another line."""
ROLLOUTS = (rl.SLIME_ROLLOUT,)
