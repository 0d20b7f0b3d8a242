"""What schedulers and operators say: who holds which GPUs, what waits, which nodes are out of service."""
